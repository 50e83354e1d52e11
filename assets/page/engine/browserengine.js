/* Runs the engine "this browser" on the app's page. The server only sends files: scripts and weights. */

import { checkRequest, createRunner } from "#page/shared/runner.js";

/** @param {any} props the props of the component of `local.js` */
export function createEngine(props) {
  const texts = JSON.parse(props.words),
    order = JSON.parse(props.order),
    offer = JSON.parse(props.offer),
    base = new URL(".", import.meta.url),
    /** @type {any} */ find = (/** @type {string} */ selector) => document.querySelector(selector);
  const { start, stop, isRunning } = createRunner({
    texts,
    offer,
    base,
    async files(family) {
      const answer = await fetch(new URL(`${family}.json`, base));
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.json();
    },
    showNotice: (...args) => find("#notice p").say(...args),
    write: (log) => find(".sd-player").grow(log),
    onRunning(running) {
      find("#run").disabled = running;
      find("#stop").disabled = !running;
      find(".sd-player").dim(running && "unrecorded"); // until the first token
      if (!running) find(".sd-player").ended();
    },
    runAgain(k) {
      const field = find("#k input[type=number]");
      window.addEventListener("sd-settings", () => find("#run").click(), { once: true });
      field.value = k;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    },
  });

  function run(/** @type {any[]} */ values) {
    const settings = Object.fromEntries(
        order.map((/** @type {string} */ name, /** @type {number} */ i) => [name, values[i]]),
      ),
      request = { ...settings, prompt: find("#prompt textarea").value };
    start(checkRequest(texts, request, offer));
  }

  return { run, stop, isRunning };
}
