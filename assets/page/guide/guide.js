/* The guide's page: glossary, common mistakes, lessons, questions, a game, a worksheet. Words are all in its JSON.
 *
 * First the game's arithmetic and the class link, without a document, so that Node can test them. Then the sections. */

/* ---- the game: speculative sampling with one die -------------------------------------------------------------- */

/* Of six faces, those that stand for each word. Chosen so that every chance in the game is a number of sixths. */
const GAME = { words: ["A", "B", "C"], draft: [4, 1, 1], target: [2, 2, 2], k: 3, cycles: 10 };
const FACES = 6;

const overlapOf = ({ draft, target }) =>
  draft.reduce((sum, q, i) => sum + Math.min(q, target[i]), 0) / FACES;

/* How often each word comes out. The mistake: a replacement drawn from the target, not from the residual. */
function lawOf(game, mistaken = false) {
  const { draft, target } = game,
    beta = overlapOf(game),
    residual = target.map((p, i) => Math.max(0, p - draft[i]) / FACES / (1 - beta));
  return target.map(
    (p, i) => Math.min(p, draft[i]) / FACES + (1 - beta) * (mistaken ? p / FACES : residual[i]),
  );
}

/* Leviathan et al., equation 1, over all the cycles of a round. */
const cardsOf = (game) =>
  (game.cycles * (1 - overlapOf(game) ** (game.k + 1))) / (1 - overlapOf(game));

/* Up to which face a drafted first word stays: min(1, p/q) of six. */
const keepOf = ({ draft, target }) => FACES * Math.min(1, target[0] / draft[0]);

/* Each word with the faces that stand for it. */
function facesOf(counts, game) {
  let next = 1;
  return counts.map((n, i) => ({ word: game.words[i], low: next, high: (next += n) - 1 }));
}

/* ---- the class link ------------------------------------------------------------------------------------------- */

const linkOf = (base, settings, seed) =>
  base + "?" + new URLSearchParams({ tab: "race", ...settings, seed });

/* ---- the sections --------------------------------------------------------------------------------------------- */

const PAPER = /arXiv (\d{4}\.\d{5})/;

function mount(element, props) {
  const W = JSON.parse(props.words),
    tabs = JSON.parse(props.tabs),
    { h, words, parts, copied } = document.querySelector(".sd-player").kit,
    root = element.querySelector(".sd-guide"),
    part = parts(root);
  const list = (items, cls) =>
    h(
      "ul",
      { class: cls || null },
      items.map((item) => h("li", {}, item)),
    );
  const lead = (text) => h("p", { class: "sd-sub sd-gd-lead" }, text);
  const button = (label, act, cls = "sd-btn") => {
    const node = h("button", { type: "button", class: cls }, label);
    node.onclick = act;
    return node;
  };
  const percent = (x) => Math.round(100 * x) + " %";

  /* arXiv numbers lead to the papers. */
  const cited = (text) =>
    text
      .split(PAPER)
      .map((piece, i) =>
        i % 2
          ? h(
              "a",
              { href: "https://arxiv.org/abs/" + piece, target: "_blank", rel: "noreferrer" },
              "arXiv " + piece,
            )
          : piece,
      );

  const SECTIONS = {
    start: () => [
      h("p", {}, W.start.lead),
      h(
        "div",
        { class: "sd-gd-row" },
        h(
          "button",
          { type: "button", class: "sd-btn sd-primary", "data-tour": "" },
          W.start.button,
        ),
        h("span", { class: "sd-sub" }, W.start.keys),
      ),
    ],
    about: () =>
      h(
        "div",
        { class: "sd-gd-two" },
        ["is", "not"].map((side) =>
          h("div", {}, h("h3", {}, W.about[side + "_title"]), list(W.about[side])),
        ),
      ),
    glossary: () =>
      h(
        "dl",
        { class: "sd-gd-words" },
        W.glossary.map(([term, meaning]) => h("div", {}, h("dt", {}, term), h("dd", {}, meaning))),
      ),
    mistakes: () => [
      lead(W.mistakes_words.lead),
      h("ol", { class: "sd-gd-wrongs" }, W.mistakes.map(mistake)),
    ],
    teach,
    quiz,
    game,
    sheet,
    practice,
  };

  function mistake([wrong, right, source]) {
    const M = W.mistakes_words,
      said = (mark, label) => [
        h("i", { "aria-hidden": "true" }, mark),
        h("span", { class: "sd-hidden" }, label + ": "),
      ];
    return h(
      "li",
      {},
      h("p", { class: "sd-gd-wrong" }, said("✗", M.wrong), wrong),
      h(
        "div",
        {},
        h("p", { class: "sd-gd-right" }, said("✓", M.right), right),
        h("p", { class: "sd-sub" }, M.source + ": ", cited(source)),
      ),
    );
  }

  /* -- lessons -- */

  function teach() {
    const T = W.teach,
      plan = ({ title, goals, steps }) =>
        h(
          "article",
          {},
          h("h3", {}, title),
          h("h4", {}, T.goals),
          list(goals),
          h(
            "ol",
            { class: "sd-gd-plan" },
            steps.map(([n, what]) =>
              h("li", {}, h("b", {}, words(T.minutes, { n })), h("span", {}, what)),
            ),
          ),
        );
    return [
      lead(T.lead),
      h("div", { class: "sd-gd-three" }, T.plans.map(plan)),
      h("h3", {}, T.seed_title),
      h("p", {}, T.seed_lead),
      classLink(),
    ];
  }

  function classLink() {
    const T = W.teach,
      settings = JSON.parse(props.settings),
      seed = h("input", { type: "number", min: 0, max: props.most, step: 1, value: props.seed }),
      said = h("span", { class: "sd-sub", role: "status" }),
      text = h("input", {
        type: "text",
        readonly: "",
        class: "sd-gd-link",
        "aria-label": T.seed_title,
      });
    const draw = () => {
      said.textContent = "";
      text.value = linkOf(
        location.origin + location.pathname,
        settings,
        Math.min(props.most, Math.max(0, Math.floor(+seed.value) || 0)),
      );
    };
    seed.oninput = draw;
    draw();
    const copy = async () => {
      const is = await copied(text.value);
      said.textContent = is ? T.copied : T.shown;
      if (!is) text.select();
    };
    part.seed = seed;
    return h(
      "div",
      { class: "sd-gd-row" },
      h("label", {}, T.seed, " ", seed),
      text,
      button(T.copy, copy),
      said,
    );
  }

  /* -- questions -- */

  const openTab = (tab) => {
    /** @type {HTMLElement} */ (document.getElementById(tab + "-button")).click();
    scrollTo({ top: 0 });
  };

  function quiz() {
    return [lead(W.quiz.lead), h("ol", { class: "sd-gd-quiz" }, W.quiz.list.map(question))];
  }

  function question({ ask, choices, answer, why, tab }, number) {
    const Q = W.quiz,
      said = h("p", { class: "sd-gd-why", "aria-live": "polite" }),
      options = choices.map((choice, i) =>
        h(
          "label",
          {},
          h("input", { type: "radio", name: "sd-guess-" + number, value: i }),
          h("span", {}, choice),
        ),
      );
    function reveal() {
      const chosen = options.findIndex((option) => option.firstChild.checked);
      if (chosen < 0) return said.replaceChildren(Q.choose);
      options.forEach((option, i) => option.classList.toggle("sd-gd-answer", i === answer));
      said.replaceChildren(
        h("b", {}, chosen === answer ? "✓ " + Q.right : "✗ " + Q.wrong),
        " ",
        choices[answer] + ": " + why + " ",
        button(words(W.see, { tab: tabs[tab] }), () => openTab(tab), "sd-link sd-inline"),
      );
    }
    return h(
      "li",
      {},
      h(
        "fieldset",
        {},
        h("legend", {}, number + 1 + ". " + ask),
        h("div", { class: "sd-gd-options" }, options, button(Q.reveal, reveal, "sd-pill")),
        said,
      ),
    );
  }

  /* -- the game -- */

  function game() {
    const G = W.game,
      [a, b] = lawOf(GAME, true),
      faces = (counts) =>
        facesOf(counts, GAME)
          .map((one) => words(one.low === one.high ? G.exact : G.range, one))
          .join(", ");
    const told = {
      k: GAME.k,
      draft: faces(GAME.draft),
      bonus: faces(GAME.target),
      keep: keepOf(GAME),
      tokens: Math.round(cardsOf(GAME)),
      share: percent(GAME.draft[0] / FACES),
      a: percent(a),
      b: percent(b),
    };
    return [
      lead(G.lead),
      h(
        "ul",
        { class: "sd-gd-roles" },
        G.roles.map(([who, what]) => h("li", {}, h("b", {}, who), " ", words(what, told))),
      ),
      h("p", {}, words(G.first, told)),
      h("p", {}, words(G.second, told)),
      h("details", {}, h("summary", {}, W.quiz.reveal), h("p", {}, G.why)),
    ];
  }

  /* -- the worksheet: on paper only, and dark on white whatever the page is -- */

  function sheet() {
    const print = () => {
      const dark = document.body.classList.contains("dark");
      paper.replaceChildren(...worksheet());
      root.dataset.print = "sheet";
      document.body.classList.remove("dark");
      addEventListener(
        "afterprint",
        () => {
          delete root.dataset.print;
          document.body.classList.toggle("dark", dark);
        },
        { once: true },
      );
      window.print();
    };
    const paper = h("div", { class: "sd-gd-paper" });
    return [lead(W.sheet.lead), button(W.sheet.print, print), paper];
  }

  function worksheet() {
    const H = W.sheet,
      blank = () => h("span", { class: "sd-gd-blank" }),
      grid = (heads, rows, /** @type {(row: any) => string} */ first = () => "") =>
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              heads.map((head) => h("th", { scope: "col" }, head)),
            ),
          ),
          h(
            "tbody",
            {},
            rows.map((row) =>
              h(
                "tr",
                {},
                heads.map((_, i) => h("td", {}, i ? "" : first(row))),
              ),
            ),
          ),
        );
    return [
      h(
        "p",
        { class: "sd-gd-fields" },
        H.name,
        blank(),
        H.date,
        blank(),
        H.seed + ": " + part.seed.value,
      ),
      h("h3", {}, H.predict),
      h(
        "ol",
        {},
        W.quiz.list.map(({ ask, choices }) =>
          h(
            "li",
            {},
            ask,
            h(
              "p",
              {},
              choices.map((choice) => h("span", { class: "sd-gd-box" }, "☐ " + choice)),
            ),
            h("p", { class: "sd-gd-fields" }, H.saw, blank()),
          ),
        ),
      ),
      h("h3", {}, H.measure),
      grid(H.columns, [1, 2, 3, 4]),
      h("h3", {}, H.tally),
      grid(["", ...GAME.words], H.rounds, (round) => round),
      h("p", { class: "sd-gd-fields" }, H.surprise, blank()),
    ];
  }

  /* -- in practice -- */

  /* A command with a button that copies it; where a page may not (without https), it is marked, ready to be copied. */
  function command(line) {
    const code = h("code", {}, line),
      press = button(
        W.practice.copy,
        async () => {
          if (await copied(line)) press.textContent = W.practice.copied;
          else getSelection()?.selectAllChildren(code);
        },
        "sd-link",
      );
    return [code, " ", press];
  }

  function practice() {
    const P = W.practice,
      { systems, defaults, beside } = JSON.parse(props.sources),
      cell = (...children) => h("td", {}, children);
    const checked = ({ checked, links }) =>
      h(
        "p",
        { class: "sd-sub" },
        words(P.checked, { date: checked }),
        links.map((url) => [
          " ",
          h(
            "a",
            { href: url, target: "_blank", rel: "noreferrer" },
            url.replace(/^https:\/\/(www\.)?/, ""),
          ),
        ]),
      );
    const table = (heads, rows) =>
      h(
        "table",
        { class: "sd-gd-systems" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            Object.values(heads).map((head) => h("th", { scope: "col" }, head)),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells)),
        ),
      );
    const how = systems.map((one) => [
      one.name,
      cell(command(one.command)),
      cell(words(P.notes[one.id], one.values), checked(one)),
    ]);
    const option = (one) =>
        one.option
          ? h("code", {}, one.option)
          : one.keep === "ratio"
            ? P.option.already
            : P.option.nothing,
      note = (one) => (one.note ? h("p", {}, P.default_notes[one.note]) : null);
    const rule = defaults.map((one) => [
      one.name,
      cell(P.draft[one.draft]),
      cell(P.keep[one.keep]),
      cell(option(one), note(one), checked(one)),
    ]);
    return [
      lead(P.lead),
      h("h3", {}, P.uses_title),
      h("p", {}, P.uses),
      table(P.heads, how),
      h("h3", {}, P.defaults_title),
      lead(P.defaults_lead),
      table(P.defaults_heads, rule),
      h("h3", {}, P.beside_title),
      h("p", {}, P.beside),
      beside.map(checked),
    ];
  }

  part.contents.textContent = W.contents;
  for (const [name, build] of Object.entries(SECTIONS)) {
    const title = h("h2", { tabindex: "-1" }, W.sections[name]),
      section = h("section", { "data-section": name }, title, build());
    part.body.append(section);
    part.list.append(
      h(
        "li",
        {},
        button(
          W.sections[name],
          () => {
            section.scrollIntoView();
            title.focus({ preventScroll: true });
          },
          "sd-link",
        ),
      ),
    );
  }
}

if (typeof module !== "undefined" && module.exports)
  module.exports = { GAME, overlapOf, lawOf, cardsOf, keepOf, facesOf, linkOf };
else mount(element, props);
