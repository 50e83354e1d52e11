/* Runs the two buttons ("lids") beside the prompt. The first unfolds the settings and shows what is chosen. The second
 * unfolds the actions on a run. */

import { html } from "#page/race/html.js";
import { latestValues } from "#page/handlers/changed.js";

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
  const texts = JSON.parse(props.words),
    [drafterNames, order] = [props.names, props.order].map((text) => JSON.parse(text));
  const [settings, more] = element.querySelectorAll("button");

  /* Writes the chosen settings on their lid. `values` has the order of the table in `settings.py`. */
  function writeLid(/** @type {any[]} */ values) {
    const valueText = (/** @type {string} */ name) => {
      const value = values[order.indexOf(name)];
      if (name === "k" && !Number(value)) return texts.open;
      return name === "drafter" ? drafterNames[value] || value : value;
    };
    const text = texts.lid.replace(/\{(\w+)\}/g, (/** @type {string[]} */ ...[, name]) => valueText(name)),
      [, head, rest] = /^([^:：]*)(.*)$/s.exec(text) || [];
    settings.replaceChildren(head, html("span", {}, rest));
  }

  writeLid(latestValues.get("sd-settings") || JSON.parse(props.values));
  const [sign, ...words] = texts.more.split(" "); // a phone shows only the sign, and of the other lid the word
  more.setAttribute("aria-label", words.join(" "));
  more.append(sign, html("span", {}, " " + words.join(" ")));
  window.addEventListener("sd-settings", (event) => {
    writeLid(/** @type {CustomEvent} */ (event).detail);
  });
  for (const lid of [settings, more])
    lid.addEventListener("click", () => {
      const shouldOpen = lid.getAttribute("aria-expanded") !== "true",
        controlled = document.getElementById(String(lid.getAttribute("aria-controls")));
      lid.setAttribute("aria-expanded", String(shouldOpen));
      if (controlled) controlled.classList.toggle("sd-unfolded", shouldOpen);
    });
}
