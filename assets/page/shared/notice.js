/* Shows the status: what the app is doing, or what is wrong. What was said of a run's end goes when a visitor types. */

import { createButton } from "#page/race/html.js";

const LOW_PX = 46; // height of the place beside the badge of the stage

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props, /** @type {Watch} */ watch) {
  const line = /** @type {HTMLElement} */ (element.querySelector("p")),
    bar = /** @type {HTMLProgressElement} */ (element.querySelector("progress"));

  let isStopped = false,
    offer = /** @type {any[]} */ ([]); // a text with a button at its end

  function show() {
    isStopped &&= Boolean(props.stopped); // the first update of the next run has nothing to say when stopped
    const text = (isStopped ? props.stopped : props.value) || "";
    line.replaceChildren(...(offer[0] === text ? offer : [text]));
    line.classList.remove("sd-long");
    line.classList.toggle("sd-wrong", props.wrong === true);
    const mayPush = props.wrong === true || !document.querySelector("#stop:enabled"); // during a run nothing moves
    line.classList.toggle("sd-long", mayPush && line.scrollHeight > LOW_PX);
    bar.hidden = !(props.share < 1) || isStopped;
    bar.value = props.share;
  }

  Object.assign(line, {
    /** @param {string} value @param {boolean} [wrong] @param {number} [share] @param {Press} [press] */
    say(value, wrong = false, share = 1, press) {
      offer = press ? [value, " ", createButton(press.label, press.act, "sd-link")] : [];
      Object.assign(props, { value, wrong, share, stopped: "" });
      show();
    },
  });
  show();
  watch(["value", "wrong", "share"], show);
  window.addEventListener("resize", show); // its place has another width
  document.addEventListener("input", () => {
    if (line.textContent && document.querySelector("#stop:disabled")) /** @type {any} */ (line).say("");
  });
  // The server sends no update for Stop, or a second later: the last updates of the stopped work may still arrive.
  document.addEventListener("click", ({ target }) => {
    if (!(target instanceof Element && target.closest("#stop"))) return;
    isStopped = true;
    show();
    document.querySelector(".sd-player").ended();
  });
}
