/* The engine "this browser" on the page of the app: a run computed here. The server hears nothing of it. */

import { checkRequest, createRunner } from "#page/shared/runner.js";

/** @param {any} props those of `here.js` */
export function createEngine(props) {
  const W = JSON.parse(props.words),
    [drafters, numbers, order] = [props.drafters, props.numbers, props.order].map((one) =>
      JSON.parse(one),
    ),
    base = new URL("../engine/", import.meta.url),
    /** @type {any} */ one = (selector) => document.querySelector(selector);
  const { start, stop, runs } = createRunner({
    W,
    base,
    async files(family) {
      const answer = await fetch(new URL(`${family}.json`, base));
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

  /* `values` of all settings, in the order of their table. */
  function press(values) {
    const named = Object.fromEntries(order.map((name, i) => [name, values[i]])),
      asked = { ...named, prompt: one("#prompt textarea").value };
    start(checkRequest(W, asked, numbers, drafters));
  }

  return { press, stop, runs };
}
