/* Shows the status: what the app is doing, or what is wrong. What was said of a run's end goes when a visitor types. */

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props, /** @type {Watch} */ watch) {
  const line = /** @type {HTMLElement} */ (element.querySelector("p")),
    bar = /** @type {HTMLProgressElement} */ (element.querySelector("progress"));

  let isStopped = false;

  function show() {
    isStopped &&= Boolean(props.stopped); // the first update of the next run has nothing to say when stopped
    line.textContent = (isStopped ? props.stopped : props.value) || "";
    line.classList.toggle("sd-wrong", props.wrong === true);
    bar.hidden = !(props.share < 1) || isStopped;
    bar.value = props.share;
  }

  Object.assign(line, {
    /** @param {string} value @param {boolean} [wrong] @param {number} [share] */
    say(value, wrong = false, share = 1) {
      Object.assign(props, { value, wrong, share, stopped: "" });
      show();
    },
  });
  show();
  watch(["value", "wrong", "share"], show);
  document.addEventListener("input", () => {
    if (line.textContent && document.querySelector("#stop:disabled")) /** @type {any} */ (line).say("");
  });
  // The server sends no update for Stop: the last updates of the stopped work may still arrive later.
  document.addEventListener("click", ({ target }) => {
    if (!(target instanceof Element && target.closest("#stop"))) return;
    isStopped = true;
    show();
  });
}
