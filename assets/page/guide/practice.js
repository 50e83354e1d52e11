/* Shows how servers switch on speculative decoding, and how they sample by default. */

import { html, createTable, createRow } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { createLead, createFold, createSourceNote } from "#page/guide/prose.js";

/** @param {GuideTexts} texts @param {Record<string, any>} sources */
export function createPractice({ practice: texts }, { systems, defaults, uses }) {
  const createNote = (/** @type {any} */ system) => createSourceNote(texts.checked, system),
    foldNote = (/** @type {string} */ note, /** @type {any} */ system) =>
      createFold(texts.heads.note, note ? html("p", {}, note) : null, createNote(system));
  const commandRows = systems.map((/** @type {any} */ system) =>
    createRow(system.name, [
      [html("code", {}, system.command), foldNote(fillText(texts.notes[system.id], system.values), system)],
    ]),
  );
  const createOption = (/** @type {any} */ system) =>
    system.option
      ? html("code", {}, system.option)
      : system.keep === "ratio"
        ? texts.option.already
        : texts.option.nothing;
  const defaultRows = defaults.map((/** @type {any} */ system) =>
    createRow(system.name, [
      texts.draft[system.draft],
      texts.keep[system.keep],
      [createOption(system), foldNote(texts.default_notes[system.note], system)],
    ]),
  );
  return [
    createLead(texts.lead),
    createTable("sd-gd-systems", [texts.heads.name, texts.heads.how], commandRows),
    html("h3", {}, texts.defaults_title),
    createLead(texts.defaults_lead),
    createTable("sd-gd-systems", Object.values(texts.defaults_heads), defaultRows),
    html("h3", {}, texts.uses_title),
    html("p", {}, texts.uses),
    uses.map(createNote),
    html("h3", {}, texts.beside_title),
    html("p", {}, texts.beside),
  ];
}
