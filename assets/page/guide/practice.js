// @ts-check
/* In practice: how serving systems are told to speculate, and what they do unless they are. */

const { h, button, link, table, tableRow, words, copied } = require("../race/player.js");
const { lead } = require("./prose.js");

function practice({ practice: P }, { systems, defaults, beside }) {
  const checked = ({ checked, links }) =>
    h(
      "p",
      { class: "sd-sub" },
      words(P.checked, { date: checked }),
      links.map((url) => [" ", link(url, url.replace(/^https:\/\/(www\.)?/, ""))]),
    );
  const how = systems.map((one) =>
    tableRow(one.name, [
      command(one.command, P),
      [words(P.notes[one.id], one.values), checked(one)],
    ]),
  );
  const option = (one) =>
      one.option
        ? h("code", {}, one.option)
        : one.keep === "ratio"
          ? P.option.already
          : P.option.nothing,
    note = (one) => (one.note ? h("p", {}, P.default_notes[one.note]) : null);
  const rule = defaults.map((one) =>
    tableRow(one.name, [
      P.draft[one.draft],
      P.keep[one.keep],
      [option(one), note(one), checked(one)],
    ]),
  );
  return [
    lead(P.lead),
    h("h3", {}, P.uses_title),
    h("p", {}, P.uses),
    table("sd-gd-systems", Object.values(P.heads), how),
    h("h3", {}, P.defaults_title),
    lead(P.defaults_lead),
    table("sd-gd-systems", Object.values(P.defaults_heads), rule),
    h("h3", {}, P.beside_title),
    h("p", {}, P.beside),
    beside.map(checked),
  ];
}

/* A command with a button that copies it; where a page may not (without https), it is marked, ready to be copied. */
function command(line, P) {
  const code = h("code", {}, line),
    press = button(
      P.copy,
      async () => {
        if (await copied(line)) press.textContent = P.copied;
        else getSelection()?.selectAllChildren(code);
      },
      "sd-link",
    );
  return [code, " ", press];
}

module.exports = { practice };
