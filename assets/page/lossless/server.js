// @ts-check
/* A server of others: what is asked of it, and its certificate as it grows. The key is read when it is sent, and
 * kept by its field alone. */

const { h, words, sentences, visible, chance } = require("../race/player.js");
const { count, roughly, figure } = require("./reading.js");

const KINDS = {
  lossless: "good",
  "not lossless": "bad",
  "speculation never ran": "bad",
  "cannot be tested": "missed",
};
const HEAT = 0.8;

const contextsIn = (told) => told.contexts.filter((one) => one.greedy);
const red = (one) => (one.red || []).some(Boolean);
const shows = (needed, draws) => needed !== null && needed <= draws;

/* How much of all texts was drawn. */
const share = (told) =>
  told.draws && told.contexts.length
    ? told.contexts.reduce((sum, one) => sum + one.done, 0) / (told.draws * told.contexts.length)
    : 0;

/* Known mistakes that no context would have shown, with the fewest draws that would. */
function blind(told) {
  const measured = told.contexts.filter((one) => one.needed);
  if (!measured.length) return [];
  return Object.keys(measured[0].needed)
    .map(
      (key) =>
        /** @type {[string, number]} */ ([
          key,
          Math.min(...measured.map((one) => one.needed[key] ?? Infinity)),
        ]),
    )
    .filter(([, needed]) => needed > told.draws)
    .sort((a, b) => a[1] - b[1]);
}

/* `servers`: what may be named. `stamp` draws the sign of a verdict. */
function examination(W, part, servers, stamp) {
  const V = W.server,
    R = V.rail,
    { listed, free, hottest } = servers,
    about = (n) => roughly(n, document.documentElement.lang || "en");
  const offered = free || listed.length > 0,
    fields = {};

  /* -- what is asked -- */

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
  function place(name, choices) {
    if (!free)
      return h(
        "select",
        {},
        choices.map((one) => h("option", { value: one }, one || "–")),
      );
    const list = "sd-list-" + name;
    const node = h("input", {
      ...bare,
      type: "url",
      inputmode: "url",
      list: listed.length ? list : null,
      value: choices[0] || "",
    });
    return listed.length
      ? [
          node,
          h(
            "datalist",
            { id: list },
            listed.map((one) => h("option", { value: one })),
          ),
        ]
      : node;
  }

  function field(name, choices) {
    const made = place(name, choices),
      node = Array.isArray(made) ? made[0] : made;
    const label = labelled(name, node);
    if (Array.isArray(made)) label.append(made[1]);
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

  /* -- what is told -- */

  const doing = (told) =>
    words(told.seconds_left === null ? "{doing}" : V.left, {
      doing: told.doing,
      seconds: count(told.seconds_left || 0),
    });
  const kindOf = (told) => KINDS[told.verdict] || "missed";

  /* A status line speaks when it changes. */
  function verdict(told, running) {
    const title =
      told && told.verdict
        ? V.verdicts[told.verdict]
        : running
          ? V.testing
          : told
            ? V.stopped_title
            : V.ready;
    const said =
        told && told.verdict
          ? sentences(told.sentences)
          : running
            ? V.wait
            : told
              ? V.unknown
              : V.lead,
      key = title + said;
    if (part.verdict.dataset.said === key && part.verdict.firstChild) return;
    part.verdict.dataset.said = key;
    part.verdict.replaceChildren(
      stamp(told ? kindOf(told) : "missed", false, title),
      h("div", {}, h("h2", {}, title), h("p", {}, said)),
    );
  }

  function paint(told, running) {
    verdict(told, running);
    if (!told) part.place.textContent = "";
    else {
      const { kind, version, model } = told.server,
        after = told.verdict && !running ? words(V.after, { seconds: count(told.seconds) }) : "";
      part.place.textContent = sentences(
        words(told.draws ? V.place : V.place_greedy, {
          kind,
          version,
          model: visible(model),
          k: told.server.k ?? "–",
          temperature: told.temperature,
          against: told.against,
        }),
        after,
        told.notes,
      );
    }
    part.contexts.replaceChildren(
      ...(told ? [...contextsIn(told).map((one) => context(told, one)), limits(told)] : []).filter(
        Boolean,
      ),
    );
  }

  function context(told, one) {
    const parted = one.greedy.gap !== null && !one.near_tie,
      bad = red(one) || parted,
      name = V.contexts[one.name] || one.name;
    const done = told.draws
      ? words(V.done, { done: count(one.done), draws: count(told.draws) })
      : V.greedy_only;
    const pending = told.draws && !one.tests,
      kind = bad ? "bad" : pending ? "missed" : "good";
    return h(
      "section",
      { class: "sd-level", "data-kind": kind },
      pending && !bad ? h("span", {}) : stamp(kind, true),
      h(
        "div",
        { class: "sd-levelbody" },
        h("div", { class: "sd-levelhead" }, h("h2", {}, name), h("b", {}, done)),
        h(
          "p",
          { class: "sd-sub" },
          words(V.text, {
            text: visible(typeof one.text === "string" ? one.text.slice(-60) : one.text.join(" ")),
          }),
        ),
        one.tests ? tests(one) : null,
        facts(told, one),
      ),
    );
  }

  function tests(one) {
    const rows = one.tests.map(([g, degrees, tail], i) =>
      h(
        "tr",
        { class: one.red[i] ? "sd-out" : null },
        h("th", { scope: "row" }, (one.red[i] ? "✗ " : "") + (i + 1)),
        h("td", {}, g === null ? "∞" : g.toFixed(1)),
        h("td", {}, String(degrees)),
        h("td", {}, tail < 1e-9 ? "< 1e−9" : tail > 0.995 ? "1" : figure(tail)),
      ),
    );
    return h(
      "table",
      { class: "sd-tests" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          V.columns.map((label) => h("th", { scope: "col" }, label)),
        ),
      ),
      h("tbody", {}, rows),
    );
  }

  function facts(told, one) {
    const F = V.facts,
      { equal, of, gap } = one.greedy,
      seen = one.witness,
      rows = [];
    if (seen)
      rows.push([
        F.witness,
        words(seen.after.length ? F.token_after : F.token, {
          after: visible(seen.after.join("")),
          place: seen.place,
          piece: visible(seen.piece),
          expected: chance(seen.expected),
          seen: chance(seen.seen),
          n: count(seen.of),
        }),
      ]);
    rows.push([
      F.text,
      equal === of
        ? words(F.same, { of })
        : words(one.near_tie ? F.tie : F.parts, { n: equal + 1, gap: figure(gap ?? 0) }),
    ]);
    const rates = Object.entries(one.drafted || {})
      .filter(([, counts]) => counts)
      .map(([mode, [drafted, accepted]]) =>
        words(F[mode], {
          drafted: count(drafted),
          accepted: count(accepted),
          share: drafted ? Math.round((100 * accepted) / drafted) : 0,
        }),
      );
    rows.push([F.acceptance, rates.length ? rates.join(F.and) : F.untold]);
    if (one.needed)
      rows.push([
        F.power,
        words(F.shown, {
          draws: count(told.draws),
          shown: Object.values(one.needed).filter((n) => shows(n, told.draws)).length,
          known: Object.keys(one.needed).length,
        }),
      ]);
    return h(
      "dl",
      { class: "sd-facts" },
      rows.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]),
    );
  }

  function limits(told) {
    const hidden = blind(told);
    if (!hidden.length) return null;
    return h(
      "section",
      { class: "sd-level" },
      h("span", {}),
      h(
        "details",
        { class: "sd-more sd-blind" },
        h("summary", {}, words(V.blind, { n: hidden.length, draws: count(told.draws) })),
        h(
          "ul",
          {},
          hidden.map(([key, n]) =>
            h(
              "li",
              {},
              words(n === Infinity ? V.never : V.needs, {
                mistake: (W.mistakes[key] || { title: key }).title,
                needed: n === Infinity ? "" : about(n),
              }),
            ),
          ),
        ),
      ),
    );
  }

  furniture();
  return { offered, asked, paint, doing, share };
}

module.exports = { examination, share, blind };
