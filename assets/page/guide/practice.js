/* In practice: how serving systems are told to speculate, and what they do unless they are. */

import { h, table, tableRow } from "#page/race/kit.js";
import { words } from "#page/race/text.js";
import { lead, fold, checked } from "#page/guide/prose.js";

export function practice({ practice: P }, { systems, defaults, beside }) {
  const read = (one) => checked(P.checked, one),
    noted = (note, one) => fold(P.heads.note, note ? h("p", {}, note) : null, read(one));
  const how = systems.map((one) =>
    tableRow(one.name, [
      [h("code", {}, one.command), noted(words(P.notes[one.id], one.values), one)],
    ]),
  );
  const option = (one) =>
    one.option
      ? h("code", {}, one.option)
      : one.keep === "ratio"
        ? P.option.already
        : P.option.nothing;
  const rule = defaults.map((one) =>
    tableRow(one.name, [
      P.draft[one.draft],
      P.keep[one.keep],
      [option(one), noted(P.default_notes[one.note], one)],
    ]),
  );
  return [
    lead(P.lead),
    table("sd-gd-systems", [P.heads.name, P.heads.how], how),
    h("h3", {}, P.defaults_title),
    lead(P.defaults_lead),
    table("sd-gd-systems", Object.values(P.defaults_heads), rule),
    h("h3", {}, P.uses_title),
    h("p", {}, P.uses),
    h("h3", {}, P.beside_title),
    h("p", {}, P.beside),
    beside.map(read),
  ];
}
