// @ts-check
/* Questions people ask: folded answers, the sources of what they say about others, and a converter of acceptance rates.
 *
 * First the converter's arithmetic, without a document, so that Node can test it. Then the list. */

const { expectedAccepted } = require("../theory/formulas.js");

/* ---- one run's acceptance, said in three ways ------------------------------------------------------------------ */

const EXAMPLE = { name: "rate", value: 0.4, k: 4 }, // what a log showed somebody
  LARGEST = 64; // drafts a cycle

/* α by halving: more acceptance, more accepted tokens. */
function alphaOf(accepted, k) {
  let low = 0,
    high = 1;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (expectedAccepted(middle, k) < accepted) low = middle;
    else high = middle;
  }
  return high;
}

/* One of `rate` (accepted over drafted), `alpha` and `tau` gives all three; null if no run has it. K drafts in every
 * cycle; for α each is kept independently, with the same chance. */
function convert(name, value, k) {
  if (!Number.isInteger(k) || k < 1 || k > LARGEST || !Number.isFinite(value)) return null;
  if (name === "alpha" && (value < 0 || value > 1)) return null;
  const accepted =
    name === "rate" ? value * k : name === "tau" ? value - 1 : expectedAccepted(value, k);
  if (accepted < 0 || accepted > k) return null;
  return {
    rate: accepted / k,
    alpha: name === "alpha" ? value : alphaOf(accepted, k),
    tau: accepted + 1,
  };
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

/* Where the page shows more: tabs, and sections of the Guide. */
const SEE = {
  which: { tabs: ["methods"], sections: ["practice"] },
  nothing: { tabs: ["lossless", "theory"], sections: ["mistakes"] },
  convert: { tabs: ["theory"], sections: ["glossary"] },
  bill: { sections: ["mistakes"] },
  template: { sections: ["glossary"] },
  hybrid: { sections: ["glossary"] },
  load: { tabs: ["theory"], sections: ["practice"] },
  local: { sections: ["practice"] },
};

function mount(element, props) {
  const W = JSON.parse(props.words),
    tabs = JSON.parse(props.tabs),
    sources = JSON.parse(props.sources),
    { h, button, link, words, parts, fixed } = document.querySelector(".sd-player").kit,
    part = parts(element.querySelector(".sd-answers"));

  /* What stands between backticks is code. */
  const marked = (text) =>
    text.split("\x60").map((piece, i) => (i % 2 ? h("code", {}, piece) : piece));
  const item = ([head, rest]) => h("li", {}, h("b", {}, head), " ", marked(rest));

  function told(text, values) {
    if (typeof text !== "string") return h("ol", {}, text.map(item));
    return h("p", {}, marked(words(text, values)));
  }

  const source = ({ checked, links }) =>
    h(
      "p",
      { class: "sd-sub" },
      words(W.checked, { date: checked }),
      links.map((url) => [" ", link(url, url.replace("https://", ""))]),
    );

  const way = (label, go) => button(words(W.see, { tab: label }), go, "sd-link sd-inline");
  const toTab = (name) => () => {
    document.getElementById(name + "-button")?.click();
    scrollTo({ top: 0 });
  };
  const toSection = (name) => () => {
    const section = document.querySelector(`.sd-guide [data-section="${name}"]`);
    section?.scrollIntoView();
    /** @type {HTMLElement | null | undefined} */ (section?.querySelector("h2"))?.focus({
      preventScroll: true,
    });
  };
  const ways = ({ tabs: shown = [], sections = [] }) =>
    h(
      "p",
      { class: "sd-an-ways" },
      sections.map((name) => way(W.sections[name], toSection(name))),
      shown.map((name) => way(tabs[name], toTab(name))),
    );

  function answer([id, { ask, say }]) {
    const read = sources.filter((one) => one.id === id),
      values = Object.assign({}, ...read.map((one) => one.values));
    return h(
      "details",
      { "data-answer": id },
      h("summary", {}, h("h3", {}, ask)),
      id === "convert" ? converter() : null,
      say.map((text) => told(text, values)),
      id in SEE ? ways(SEE[id]) : null,
      read.map(source),
    );
  }

  function converter() {
    let { name: last, value } = EXAMPLE;
    const DIGITS = { rate: 1, alpha: 3, tau: 2 },
      scale = (name) => (name === "rate" ? 100 : 1),
      said = h("p", { class: "sd-sub", role: "status" });
    const field = (max, step) => h("input", { type: "number", min: 0, max, step }),
      inputs = {
        rate: field(100, 1),
        alpha: field(1, 0.01),
        tau: field(LARGEST + 1, 0.1),
      };
    const k = h("input", { type: "number", min: 1, max: LARGEST, step: 1, value: EXAMPLE.k });
    function draw(typed) {
      const found = convert(last, value, +k.value);
      said.textContent = found ? "" : words(W.wrong, { most: LARGEST });
      for (const [name, input] of Object.entries(inputs))
        if (name !== typed)
          input.value = found ? fixed(found[name] * scale(name), DIGITS[name]) : "";
    }
    for (const [name, input] of Object.entries(inputs))
      input.oninput = () => {
        last = name;
        value = input.value === "" ? NaN : +input.value / scale(name);
        draw(name);
      };
    k.oninput = () => draw(last);
    draw();
    return h(
      "div",
      { class: "sd-an-converter" },
      Object.entries({ k, ...inputs }).map(([name, input]) =>
        h("label", {}, h("span", {}, W.fields[name]), input),
      ),
      said,
    );
  }

  part.title.textContent = W.title;
  part.list.append(h("p", { class: "sd-sub" }, W.lead), ...Object.entries(W.list).map(answer));
}

if (typeof element === "undefined") module.exports = { convert, SEE };
else mount(element, props);
