/* Handles the engine "this browser" on the app's page. Presses on Run and Stop that are meant for it never reach
 * Gradio. Its script, browserengine.js, loads only when the engine is chosen. */

import { latestValues } from "#page/handlers/changed.js";

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
  let [chosenEngine] = latestValues.get("sd-engine") || [props.chosen],
    values = latestValues.get("sd-settings") || JSON.parse(props.values),
    /** @type {any} */ engine = null,
    /** @type {Promise<any> | null} */ loading = null;

  /** @returns {Promise<any>} */
  const load = () =>
    (loading ||= import("#page/engine/browserengine.js")
      .then(({ createEngine }) => (engine = createEngine(props)))
      .catch(() => {
        const line = /** @type {any} */ (document.querySelector("#notice p"));
        line.say(JSON.parse(props.words).missing, true);
        loading = null;
      }));
  const isChosen = () => chosenEngine === props.here;

  window.addEventListener("sd-settings", (event) => {
    values = /** @type {CustomEvent} */ (event).detail;
  });
  window.addEventListener("sd-engine", (event) => {
    [chosenEngine] = /** @type {CustomEvent} */ (event).detail;
    if (isChosen()) load();
  });
  if (isChosen()) load();
  document.addEventListener(
    "click",
    (event) => {
      const button = /** @type {any} */ (event.target).closest("#run, #stop"),
        isStop = button && button.id === "stop";
      if (!button || (isStop ? !(engine && engine.isRunning()) : !isChosen())) return;
      event.stopImmediatePropagation();
      event.preventDefault();
      if (isStop) engine.stop();
      else load().then(() => engine && engine.run(values));
    },
    true,
  );
}
