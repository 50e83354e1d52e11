/* Runs a visitor's own prompt on the site without a server: handles the fields, and the button that runs and stops. */

import { checkRequest, createRunner } from "#page/shared/runner.js";

/** @param {{ page: any, root: URL,
 *   showNotice: (text: string, wrong?: boolean, share?: number, press?: Press) => void,
 *   write: (log: string) => void, onRunning: (running: boolean) => void }} host
 * `write` receives the growing log, and `onRunning` is called at the beginning and at the end of a run.
 * Returns `press`, the action of the button, `showSettings`, which fills in the fields, and `k`, which reads its field:
 * the K of a run on show is not filled in, because it was chosen by the costs of another machine. */
export function createOwnRuns({ page, root, showNotice, write, onRunning }) {
  const texts = page.words.own,
    { drafters, numbers } = page.engine,
    button = /** @type {HTMLElement} */ (document.getElementById("run")),
    /** @type {any} */ findField = (/** @type {string} */ name) => document.querySelector(`#settings [name=${name}]`),
    model = findField("target"),
    family = () => (model ? model.value : Object.keys(drafters)[0]), // without a menu, there is only one family
    /** @type {HTMLTextAreaElement} */ prompt = /** @type {any} */ (document.querySelector("#prompt textarea"));
  const runner = createRunner({
    texts,
    offer: page.engine,
    base: new URL("engine/", root),
    files: async (family) => page.engine.files[family],
    showNotice,
    write,
    onRunning(isRunning) {
      button.textContent = isRunning ? page.words.stop : page.words.run;
      button.toggleAttribute("data-stops", isRunning);
      onRunning(isRunning);
    },
    runAgain(k) {
      findField("k").value = k;
      press();
    },
  });

  /* Fills in the settings of the run on show, and offers the drafters that can run here, and those of recordings. */
  function showSettings(/** @type {any} */ settings, /** @type {string[]} */ recorded) {
    const menu = findField("drafter"),
      createGroup = (/** @type {string} */ label, /** @type {string[]} */ names) => {
        const group = document.createElement("optgroup");
        group.label = label;
        group.append(...names.map((name) => new Option(page.drafters[name] || name, name)));
        return group;
      },
      here = Object.keys(drafters[family()]),
      others = recorded.filter((name) => !here.includes(name));
    menu.replaceChildren(createGroup(page.words.here, here), createGroup(page.words.recorded, others));
    menu.value = settings.drafter;
    for (const name of Object.keys(numbers)) {
      const { low, high } = numbers[name];
      if (name in settings) findField(name).value = Math.min(high, Math.max(low, settings[name]));
    }
  }

  function press() {
    if (runner.isRunning()) return runner.stop();
    const values = /** @type {Values} */ ({ prompt: prompt.value, target: family() });
    for (const name of ["drafter", "stop", ...Object.keys(numbers)]) values[name] = findField(name).value;
    runner.start(checkRequest(texts, values, page.engine));
  }

  if (model)
    model.onchange = () => {
      const names = Object.keys(drafters[family()]),
        menu = findField("drafter");
      if (!names.includes(menu.value)) menu.value = names[0];
    };

  return { showSettings, press, k: () => findField("k").value };
}
