/* Runs the two buttons ("lids") beside the prompt. The first unfolds the settings and shows what is chosen. The second
 * unfolds the actions on a run. */

import { html } from "#page/race/html.js";
import { latestValues } from "#page/handlers/changed.js";

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
  const texts = JSON.parse(props.words),
    [drafterNames, order, usual] = [props.names, props.order, props.usual].map((text) => JSON.parse(text));
  const [settings, more] = element.querySelectorAll("button");

  /* Writes on the lid which settings differ from the default. `values` has the order of the table in `settings.py`. */
  function writeLid(/** @type {any[]} */ values) {
    const [, head, colon, list] = /^([^:：]*)([:：] ?)(.*)$/s.exec(texts.lid) || [],
      comma = /[,，] ?/;
    const changed = list.split(comma).flatMap((/** @type {string} */ entry) => {
      const name = (/\{(\w+)\}/.exec(entry) || [])[1],
        i = order.indexOf(name),
        value = values[i];
      if (String(value) === String(usual[i])) return [];
      return [entry.replace(`{${name}}`, name === "drafter" ? drafterNames[value] || value : value)];
    });
    const rest = changed.join((comma.exec(list) || [", "])[0]) || texts.usual;
    settings.replaceChildren(head, html("span", {}, colon + rest));
  }

  writeLid(latestValues.get("sd-settings") || JSON.parse(props.values));
  more.setAttribute("aria-label", texts.more);
  more.append(texts.more.split(/[:：]/)[0]);
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
