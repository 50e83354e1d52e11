/* The engine "this browser" on the page of the app: presses that are meant for it never reach Gradio. Its script
 * (browser.js) comes when it is chosen, so that the page itself stays light. */

import { latestValues } from "#page/handlers/changed.js";

export function mount(element, props) {
  let [chosen] = latestValues.get("sd-engine") || [props.chosen],
    values = latestValues.get("sd-settings") || JSON.parse(props.values),
    /** @type {any} */ engine = null,
    /** @type {Promise<any> | null} */ coming = null;

  /** @returns {Promise<any>} */
  const load = () =>
    (coming ||= import("#page/shared/browserengine.js")
      .then(({ engine: made }) => (engine = made(props)))
      .catch(() => {
        const line = /** @type {any} */ (document.querySelector("#notice p"));
        line.say(JSON.parse(props.words).missing, true);
        coming = null;
      }));
  const isChosen = () => chosen === props.here;

  window.addEventListener("sd-settings", (event) => {
    values = /** @type {CustomEvent} */ (event).detail;
  });
  window.addEventListener("sd-engine", (event) => {
    [chosen] = /** @type {CustomEvent} */ (event).detail;
    if (isChosen()) load();
  });
  if (isChosen()) load();
  document.addEventListener(
    "click",
    (event) => {
      const pressed = /** @type {any} */ (event.target).closest("#run, #stop"),
        stops = pressed && pressed.id === "stop";
      if (!pressed || (stops ? !(engine && engine.runs()) : !isChosen())) return;
      event.stopImmediatePropagation();
      event.preventDefault();
      if (stops) engine.stop();
      else load().then(() => engine && engine.press(values));
    },
    true,
  );
}
