/* What is asked of a server. Its key is read when it is sent, and kept by its field alone. */

import { h } from "#page/race/kit.js";

const HEAT = 0.8;

/* `servers`: what may be named. */
export function form(W, part, { listed, free, hottest }) {
  const R = W.server.rail,
    fields = {};

  const infoOf = (name) => (name === "address" && !free ? R.listed_info : R[name + "_info"]);

  const labelled = (name, node, more) =>
    h(
      "label",
      {},
      h("span", { class: "sd-lab" }, R[name]),
      more,
      (fields[name] = node),
      infoOf(name) && h("small", {}, infoOf(name)),
    );

  const bare = { autocomplete: "off", spellcheck: "false", autocapitalize: "off", maxlength: 500 };

  /* Any address may be typed where the host allows it; else its owner's are chosen from. */
  function field(name, choices) {
    const option = (value, label = /** @type {string | null} */ (null)) =>
      h("option", { value }, label);
    if (!free)
      return labelled(
        name,
        h(
          "select",
          {},
          choices.map((one) => option(one, one || "–")),
        ),
      );
    const list = listed.length ? "sd-list-" + name : null,
      value = choices[0] || "",
      label = labelled(name, h("input", { ...bare, type: "url", inputmode: "url", list, value }));
    if (list)
      label.append(
        h(
          "datalist",
          { id: list },
          listed.map((one) => option(one)),
        ),
      );
    return label;
  }

  function furniture() {
    const heat = h("output", {}, HEAT.toFixed(1)),
      hot = h("input", { type: "range", min: 0, max: hottest, step: 0.1, value: HEAT });
    hot.addEventListener("input", () => (heat.textContent = (+hot.value).toFixed(1)));
    const own = h("input", { type: "checkbox" });
    fields.embedded = own;
    part.theirs.append(
      field("address", listed),
      field("plain", ["", ...listed]),
      h(
        "label",
        { class: "sd-tick" },
        own,
        h("span", {}, R.embedded, h("small", {}, " " + R.embedded_info)),
      ),
      labelled("key", h("input", { ...bare, type: "password" })),
      labelled("temperature", hot, heat),
    );
  }

  const asked = () => ({
    address: fields.address.value,
    plain: fields.plain.value,
    key: fields.key.value,
    embedded: fields.embedded.checked,
    temperature: +fields.temperature.value,
  });

  furniture();
  return { offered: free || listed.length > 0, asked };
}
