// @ts-check
/* The engine "this browser" on the page of the app: Run and Stop compute here, and the server hears nothing of it. */

const { checked, computed } = require("./computed.js");

const W = JSON.parse(props.words),
  [drafters, numbers, others, order] = [
    props.drafters,
    props.numbers,
    props.others,
    props.order,
  ].map((one) => JSON.parse(one)),
  place = new URL(props.place, location.href),
  base = new URL(".", place),
  /** @type {any} */ one = (selector) => document.querySelector(selector);
let values = JSON.parse(props.values),
  chosen = props.chosen;

const engine = computed({
  W,
  script: new URL("engine.js", base),
  base,
  async files() {
    const answer = await fetch(place);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.json();
  },
  say: (...told) => one("#notice p").say(...told),
  write: (log) => one(".sd-player").grow(log),
  running(is) {
    one("#run").disabled = is;
    one("#stop").disabled = !is;
    if (!is) one(".sd-player").ended();
  },
});

function asked() {
  const named = Object.fromEntries(order.map((name, i) => [name, values[i]]));
  return checked(W, { ...named, prompt: one("#prompt textarea").value }, numbers, drafters, others);
}

window.addEventListener("sd-settings", (event) => {
  values = /** @type {CustomEvent} */ (event).detail;
});
window.addEventListener("sd-engine", (event) => {
  [chosen] = /** @type {CustomEvent} */ (event).detail;
});
/* Before Gradio hears of it: a press that is meant for this browser makes no request. */
document.addEventListener(
  "click",
  (event) => {
    const pressed = /** @type {any} */ (event.target).closest("#run, #stop"),
      stops = pressed && pressed.id === "stop";
    if (!pressed || (stops ? !engine.runs() : chosen !== props.here)) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    if (stops) engine.stop();
    else engine.start(asked());
  },
  true,
);
