/* Shows frequent questions with folded answers and their sources, and a converter of acceptance rates. */

import { html, createButton } from "#page/race/html.js";
import { fillText } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { GUIDE_URL, createLead, createFold, createColumns, createSourceNote, tabOpener } from "#page/guide/prose.js";
import { expectedAccepted } from "#page/theory/formulas.js";

const EXAMPLE = { name: "rate", value: 0.4, k: 4 }, // accepted / drafted, as a server's log might report it
  MAX_K = 64; // drafted tokens per cycle

/* Returns the α for which `accepted` of k drafts are accepted on average. */
function alphaOf(/** @type {number} */ accepted, /** @type {number} */ k) {
  let low = 0,
    high = 1;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (expectedAccepted(middle, k) < accepted) low = middle;
    else high = middle;
  }
  return high;
}

/* Converts one of `rate` (accepted / drafted), `alpha` and `tau` into all three; returns null for an impossible value.
 * Each cycle drafts k tokens. α is the chance that a judged token is accepted, and taken to be the same for all. */
export function convert(/** @type {string} */ name, /** @type {number} */ value, /** @type {number} */ k) {
  if (!Number.isInteger(k) || k < 1 || k > MAX_K || !Number.isFinite(value)) return null;
  if (name === "alpha" && (value < 0 || value > 1)) return null;
  const accepted = name === "rate" ? value * k : name === "tau" ? value - 1 : expectedAccepted(value, k);
  if (accepted < 0 || accepted > k) return null;
  return {
    rate: accepted / k,
    alpha: name === "alpha" ? value : alphaOf(accepted, k),
    tau: accepted + 1,
  };
}

export const GROUPS = {
  works: ["serial", "behind", "meaning", "optimal", "siblings", "eagle3", "dflash", "domain"],
  method: ["which", "best", "train", "adapters", "template", "vision"],
  text: ["match", "safety", "tools", "batch", "beam", "penalties", "logprobs", "side"],
  speed: [
    "nothing",
    "zero",
    "convert",
    "constant",
    "limit",
    "spread",
    "reading",
    "long",
    "quantised",
    "measure",
    "chunks",
    "good",
    "gate",
  ],
  server: ["load", "chunked", "prefix", "kv", "parallel"],
  price: ["bill", "energy", "prompt", "memory"],
  page: ["timeline", "stored", "host", "licence", "threads"],
};

/** Lists where the page shows more about a question: tabs, a fold in the tab, and sections of the Guide.
 * @type {Record<string, { tabs?: string[], fold?: string, sections?: string[] }>} */
export const SEE_ALSO = {
  behind: { tabs: ["step"] },
  siblings: { tabs: ["methods"] },
  constant: { tabs: ["theory"], fold: "clock" },
  match: { tabs: ["lossless"], sections: ["practice"] },
  which: { tabs: ["methods"], sections: ["practice"] },
  best: { tabs: ["methods"] },
  nothing: { tabs: ["lossless", "theory"] },
  convert: { tabs: ["theory"], sections: ["glossary"] },
  domain: { tabs: ["methods"] },
  penalties: { sections: ["glossary"] },
  measure: { sections: ["mistakes"] },
  good: { tabs: ["lossless"] },
  gate: { tabs: ["theory"] },
  prompt: { sections: ["glossary"] },
  bill: { sections: ["mistakes"] },
  template: { sections: ["glossary"] },
  load: { tabs: ["theory"], fold: "wall", sections: ["practice"] },
  limit: { tabs: ["theory"] },
  spread: { tabs: ["methods"] },
  timeline: { tabs: ["race"] },
  host: { sections: ["teach"] },
};

/** Marks the text between backticks as code. @param {string} text */
export const markCode = (text) => text.split("\x60").map((piece, i) => (i % 2 ? html("code", {}, piece) : piece));
const createStep = (/** @type {string[]} */ [head, rest]) => html("li", {}, html("b", {}, head), " ", markCode(rest));

/** @param {GuideTexts} texts @param {Record<string, string>} tabs @param {any[]} sources */
export function createAnswers({ answers: texts, practice, sections: sectionNames, see: seeText }, tabs, sources) {
  const createText = (/** @type {string | string[][]} */ text, /** @type {Values} */ values) =>
    typeof text === "string" ? html("p", {}, markCode(fillText(text, values))) : html("ol", {}, text.map(createStep));

  /** @param {{ tabs?: string[], fold?: string, sections?: string[] }} page */
  const createLinks = ({ tabs: tabNames = [], fold, sections = [] }) =>
    html(
      "p",
      { class: "sd-gd-links" },
      sections.map((name) => html("a", { href: GUIDE_URL + name }, fillText(seeText, { tab: sectionNames[name] }))),
      tabNames.map((name) =>
        createButton(fillText(seeText, { tab: tabs[name] }), tabOpener(name, fold), "sd-link sd-inline"),
      ),
    );

  function createAnswer(/** @type {string} */ id) {
    const { ask, say } = /** @type {Entries} */ (texts.list)[id],
      ownSources = sources.filter((source) => source.id === id),
      values = Object.assign({}, ...ownSources.map((source) => source.values));
    const folded = createFold(
      ask,
      id === "convert" ? createConverter(texts) : null,
      say.map((text) => createText(text, values)),
      id in SEE_ALSO ? createLinks(SEE_ALSO[id]) : null,
      ownSources.map((source) => createSourceNote(practice.checked, source)),
    );
    folded.dataset.answer = id;
    return folded;
  }

  /** @param {[string, string[]]} group */
  const createGroup = ([name, ids]) => [html("h3", {}, texts.groups[name]), ids.map(createAnswer)];
  return [createLead(texts.lead), createColumns(Object.entries(GROUPS).map(createGroup))];
}

function createConverter(/** @type {GuideTexts["answers"]} */ texts) {
  let { name: lastField, value } = EXAMPLE;
  const DIGITS = /** @type {Record<string, number>} */ ({ rate: 1, alpha: 3, tau: 2 }),
    scaleOf = (/** @type {string} */ name) => (name === "rate" ? 100 : 1),
    notice = html("p", { class: "sd-sub", role: "status" });
  const createField = (/** @type {number} */ max, /** @type {number} */ step) =>
      html("input", { type: "number", min: 0, max, step }),
    inputs = {
      rate: createField(100, 1),
      alpha: createField(1, 0.01),
      tau: createField(MAX_K + 1, 0.1),
    };
  const k = html("input", { type: "number", min: 1, max: MAX_K, step: 1, value: EXAMPLE.k });
  function draw(/** @type {string} */ typed = "") {
    const converted = convert(lastField, value, +k.value);
    notice.textContent = converted ? "" : fillText(texts.wrong, { most: MAX_K });
    for (const [name, input] of Object.entries(inputs))
      if (name !== typed)
        input.value = converted
          ? toFixed(/** @type {Record<string, number>} */ (converted)[name] * scaleOf(name), DIGITS[name])
          : "";
  }
  for (const [name, input] of Object.entries(inputs))
    input.oninput = () => {
      lastField = name;
      value = input.value === "" ? NaN : +input.value / scaleOf(name);
      draw(name);
    };
  k.oninput = () => draw(lastField);
  draw();
  return html(
    "div",
    { class: "sd-gd-row" },
    Object.entries({ k, ...inputs }).map(([name, input]) =>
      html("label", {}, html("span", {}, texts.fields[name]), input),
    ),
    notice,
  );
}
