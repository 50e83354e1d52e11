/* A prompt of the visitor's own on a page of files: its fields, and the button that runs and stops. */

import { checkRequest, createRunner } from "#page/shared/runner.js";

/** @param {{ page: any, root: URL, say: (text: string, wrong?: boolean, share?: number) => void,
 *   write: (log: string) => void, over: () => void }} host
 * `write` is given the log as it grows, `over` is called once at the end of a run, however it ends.
 * Of what this gives, `press` is what the button does, and `offer` fills in the settings. */
export function createOwnRuns({ page, root, say, write, over }) {
  const W = page.words.own,
    { drafters, numbers } = page.engine,
    button = /** @type {HTMLElement} */ (document.getElementById("run")),
    /** @type {any} */ field = (name) => document.querySelector(`#settings [name=${name}]`),
    model = field("family"),
    family = () => (model ? model.value : Object.keys(drafters)[0]), // the only one
    /** @type {HTMLTextAreaElement} */ prompt = /** @type {any} */ (
      document.querySelector("#prompt textarea")
    );
  const engine = createRunner({
    W,
    base: new URL("engine/", root),
    files: async (family) => page.engine.files[family],
    say,
    write,
    running(is) {
      button.textContent = is ? page.words.stop : page.words.run;
      if (!is) over();
    },
  });

  /* The settings of the run on show, and who may draft: those that are recorded, and those that run here. */
  function offer(told, recorded) {
    const menu = field("drafter"),
      group = (label, names) => {
        const made = document.createElement("optgroup");
        made.label = label;
        made.append(...names.map((name) => new Option(page.drafters[name] || name, name)));
        return made;
      },
      here = drafters[family()],
      others = Object.keys(here).filter((name) => !recorded.includes(name));
    menu.replaceChildren(group(page.words.recorded, recorded), group(page.words.here, others));
    menu.value = told.drafter;
    for (const name of Object.keys(numbers)) {
      const { low, high } = numbers[name];
      if (name in told) field(name).value = Math.min(high, Math.max(low, told[name]));
    }
  }

  function press() {
    if (engine.runs()) return engine.stop();
    const values = { prompt: prompt.value, family: family() };
    for (const name of ["drafter", "stop", ...Object.keys(numbers)])
      values[name] = field(name).value;
    engine.start(checkRequest(W, values, numbers, drafters));
  }

  if (model)
    model.onchange = () => {
      const known = Object.keys(drafters[family()]),
        menu = field("drafter");
      if (!known.includes(menu.value)) menu.value = known[0];
    };

  return { offer, press };
}
