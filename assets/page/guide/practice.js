/* In practice: how serving systems are told to speculate, and what they do unless they are. */

import { html, createTable, createRow } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { createLead, createFold, createSourceNote } from "#page/guide/prose.js";

export function createPractice({ practice: P }, { systems, defaults, beside }) {
  const read = (one) => createSourceNote(P.checked, one),
    noted = (note, one) => createFold(P.heads.note, note ? html("p", {}, note) : null, read(one));
  const how = systems.map((one) =>
    createRow(one.name, [
      [html("code", {}, one.command), noted(fillText(P.notes[one.id], one.values), one)],
    ]),
  );
  const option = (one) =>
    one.option
      ? html("code", {}, one.option)
      : one.keep === "ratio"
        ? P.option.already
        : P.option.nothing;
  const rule = defaults.map((one) =>
    createRow(one.name, [
      P.draft[one.draft],
      P.keep[one.keep],
      [option(one), noted(P.default_notes[one.note], one)],
    ]),
  );
  return [
    createLead(P.lead),
    createTable("sd-gd-systems", [P.heads.name, P.heads.how], how),
    html("h3", {}, P.defaults_title),
    createLead(P.defaults_lead),
    createTable("sd-gd-systems", Object.values(P.defaults_heads), rule),
    html("h3", {}, P.uses_title),
    html("p", {}, P.uses),
    html("h3", {}, P.beside_title),
    html("p", {}, P.beside),
    beside.map(read),
  ];
}
