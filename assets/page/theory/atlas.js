/* Shows published figures: what each needs, leaves out, and would give here. */

import { html, createLink, createRow } from "#page/race/html.js";
import { fillText, joinSentences } from "#page/race/text.js";
import { toFixed } from "#page/race/format.js";
import { formatTimes } from "#page/theory/format.js";
import { createScrollTable } from "#page/theory/axes.js";
import { TOLERANCE, workOut, expectAt, missOf } from "#page/theory/account.js";

/** @typedef {import("#page/theory/account.js").Claim} Claim */
/** @typedef {import("#page/theory/account.js").Costs} Costs */
/** @typedef {import("#page/theory/account.js").Predicted} Predicted */
/** @typedef {import("#page/theory/account.js").Span} Span */
/** @typedef {{drafter: string, family?: string, dtype?: string, domain?: string, temperature: number, cpu?: string,
 *   cores?: number, gpu?: string}} Where */
/** @typedef {{k: number, tau: number, draft_cost: number, verify_cost: number, measured_speedup: number}} Figures */
/** @typedef {Where & Figures} Row */
/** @typedef {Where & Predicted} Prediction */
/** @typedef {Costs & {label: string}} Place */

const RUN = "run"; // the value of the menu's entry for the run in the player

/** What remains of a cycle's cost counts as overhead, so that the account closes. @param {Row} row  @returns {Costs} */
function costsOf({ k, tau, draft_cost: c, verify_cost: v, measured_speedup: speedup }) {
  return { k, c, v, o: Math.max(0, tau / speedup - k * c - v) };
}

/** @param {any} page  @param {Claim[]} claims  @param {{places: Row[], predictions: Prediction[]}} measured */
export function createAtlas(page, claims, { places: rows, predictions }) {
  const { texts, part } = page,
    words = texts.atlas;
  /** @type {Place[]} */
  const places = rows.map((row) => ({ label: describe(row), ...costsOf(row) }));
  let chosen = RUN;

  /** @param {Where} where */
  function describe({ drafter, family, dtype, cpu, cores, gpu }) {
    const machine = gpu ?? fillText(words.cpu, { cpu, cores });
    return [words.families[family ?? ""] ?? family, dtype, words.methods[drafter] ?? drafter, machine]
      .filter(Boolean)
      .join(" · ");
  }

  /** @returns {Place | undefined} */
  function placeNow() {
    const run = page.measured();
    return chosen === RUN && run ? { ...run, label: texts.shown } : (places[+chosen] ?? places[places.length - 1]);
  }

  function buildMenu() {
    const menu = part.place;
    menu.replaceChildren(
      html("option", { value: RUN }, texts.shown),
      ...places.map(({ label }, i) => html("option", { value: i }, label)),
    );
    menu.onchange = () => {
      chosen = menu.value;
      paint();
    };
    part.report.onchange = async () => {
      const [file] = part.report.files;
      if (file) addReport(await file.text());
    };
  }

  /** Adds the rows of a report that `specdec bench --json` wrote. @param {string} text */
  function addReport(text) {
    const before = places.length;
    try {
      const report = JSON.parse(text);
      for (const row of /** @type {Row[]} */ (report.rows))
        if (row.k && row.tau && row.measured_speedup && row.verify_cost)
          places.push({
            ...costsOf(row),
            label: [words.yours, row.domain, "T " + row.temperature, describe({ ...row, ...report.machine })].join(
              " · ",
            ),
          });
    } catch {
      // what is no report has no rows
    }
    part.reportsay.textContent = places.length > before ? "" : words.no_report;
    if (places.length === before) return;
    chosen = String(before);
    buildMenu();
    paint();
  }

  /** With no more digits than the figure has. @param {Span} span */
  function spanText(span) {
    const [low, high] = span.map((value) => String(+toFixed(value)));
    return low === high ? low + "×" : fillText(words.to, { low, high: high + "×" });
  }

  /** The part of a bar up to the lower end is solid, the rest pale.
   * @param {string} label  @param {Span | null} span  @param {number} most  @param {string} cls */
  function createBar(label, span, most, cls) {
    const widthOf = (/** @type {number} */ value) => `width:${((value / most) * 100).toFixed(1)}%`;
    return html(
      "div",
      { class: "sd-th-quote " + cls },
      html("span", {}, label),
      html(
        "span",
        { class: "sd-th-track", style: `--one:${(100 / most).toFixed(1)}%` },
        span && html("i", { class: "sd-th-reach", style: widthOf(span[1]) }),
        span && html("i", { style: widthOf(span[0]) }),
      ),
      html("b", {}, span ? spanText(span) : "–"),
    );
  }

  /** @param {Claim} claim */
  function conditionsOf({ engine, machine, batch, temperature, prompts, k, tau, plain, fast }) {
    const taus = tau === undefined ? null : [tau].flat().map((value) => toFixed(value));
    return [
      engine,
      machine,
      batch && fillText(batch === 1 ? words.one : words.batch, { n: batch }),
      temperature !== undefined && "T " + temperature,
      prompts,
      k && "K " + k,
      taus && "τ " + taus.join(" – "),
      plain && fast && fillText(words.rates, { plain, fast }),
    ]
      .filter(Boolean)
      .join(" · ");
  }

  /** @param {Claim} claim */
  function judge(claim) {
    const { speedups, taus, cost, draft, alpha, missing } = workOut(claim),
      figures = {
        times: speedups && spanText(speedups),
        tau: taus && [...new Set(taus.map((value) => toFixed(value)))].join(" – "),
        cost: cost && toFixed(cost),
        draft: draft && toFixed(draft, draft < 0.095 ? 3 : 2),
        steps: claim.steps ?? claim.k,
        alpha: alpha && toFixed(alpha),
        k: claim.k,
      };
    const verdict = cost
      ? cost < 1
        ? words.refuted
        : joinSentences(words.needs, draft && (claim.steps === 1 ? words.needs_pass : words.needs_draft))
      : speedups
        ? joinSentences(words.no_tau, alpha && words.no_tau_alpha)
        : words.no_speed;
    const names = missing.map((name) => words.conditions[name]).join(words.comma);
    return joinSentences(
      words.notes[claim.id],
      fillText(verdict, figures),
      names && fillText(words.missing, { names }),
    );
  }

  /** @param {Claim} claim  @param {Place} place */
  function expectation(claim, place) {
    const here = expectAt(claim, place);
    if (!here) return words.no_here;
    const figures = {
      rows: here.rows,
      v: toFixed(here.v),
      cost: String(+toFixed(here.cost)),
      times: spanText(here.speedups),
      k: here.rows - 1,
    };
    return joinSentences(
      fillText(here.speedups[1] < 1 ? words.here_loses : words.here, figures),
      !claim.k && !claim.rows && fillText(words.here_no_k, figures),
      here.rows > 2 * (place.k + 1) && fillText(words.here_far, { rows: place.k + 1 }),
      (claim.batch ?? 1) > 1 && words.here_batch,
    );
  }

  function paint() {
    part.place.value = chosen === RUN && !page.measured() ? String(places.length - 1) : chosen;
    part.place.options[0].disabled = !page.measured();
    const place = placeNow();
    if (!place) return; // neither a run nor a report
    const most = Math.max(
      ...claims.flatMap((claim) => [workOut(claim).speedups?.[1] ?? 1, expectAt(claim, place)?.speedups[1] ?? 1]),
    );
    part.placesay.textContent = fillText(words.costs, {
      k: place.k,
      c: toFixed(place.c, 3),
      v: toFixed(place.v),
      o: toFixed(place.o, 3),
    });
    part.atlas.replaceChildren(...claims.map((claim) => createEntry(claim, place, most)));
  }

  /** @param {Claim} claim  @param {Place} place  @param {number} most */
  function createEntry(claim, place, most) {
    const title = [...new Set([words.methods[claim.method] ?? claim.method, claim.name])].join(" · ");
    return html(
      "article",
      { class: "sd-th-claim", "data-claim": claim.id },
      html(
        "div",
        {},
        html("h4", {}, title),
        html("p", { class: "sd-sub" }, conditionsOf(claim)),
        html(
          "p",
          { class: "sd-sub" },
          claim.links.map((url) => [createLink(url, sourceName(url), "sd-th-link"), " "]),
          fillText(claim.published ? words.dates : words.read, claim),
        ),
      ),
      html(
        "div",
        {},
        createBar(words.claimed, workOut(claim).speedups, most, "sd-th-theirs"),
        createBar(words.expected, expectAt(claim, place)?.speedups ?? null, most, "sd-th-yours"),
        html(
          "details",
          { class: "sd-th-more" },
          html("summary", {}, words.account),
          html("p", {}, judge(claim)),
          html("p", {}, expectation(claim, place)),
        ),
      ),
    );
  }

  /** @param {string} url */
  function sourceName(url) {
    const { hostname, pathname } = new URL(url),
      short = pathname.replace(/\/(blob\/[0-9a-f]+|pull|issues)\//, " ").replace(/^\/|\.html$/g, "");
    return hostname === "github.com" ? short : hostname.replace(/^www\./, "") + "/" + short;
  }

  function buildPredictions() {
    const judged = predictions.map((row) => ({ row, miss: missOf(row) })),
      misses = judged.filter(({ miss }) => Math.abs(miss.error) > TOLERANCE);
    const within = (/** @type {"error" | "tau" | "cost"} */ name) =>
      judged.filter(({ miss }) => Math.abs(miss[name]) <= TOLERANCE).length;
    part.predictsay.textContent = fillText(
      joinSentences(words.predicts, judged.length ? words.predicted : words.none),
      {
        all: judged.length,
        n: within("error"),
        tau: within("tau"),
        cost: within("cost"),
      },
    );
    if (misses.length)
      part.misses.append(
        createScrollTable(
          words.miss_heads,
          misses.map(({ row, miss }) =>
            createRow(describe(row) + " · T " + row.temperature, [
              formatTimes(miss.predicted),
              formatTimes(miss.measured),
              reasonOf(row, miss),
            ]),
          ),
        ),
      );
  }

  /** @param {Prediction} row  @param {{tau: number, cost: number}} miss */
  function reasonOf(row, { tau, cost }) {
    return Math.abs(tau) >= Math.abs(cost)
      ? fillText(words.reasons.tau, { predicted: toFixed(row.predicted_tau), measured: toFixed(row.unseen_tau) })
      : fillText(words.reasons.cost, {
          predicted: toFixed(row.predicted_cost),
          measured: toFixed(row.unseen_cost),
        });
  }

  buildMenu();
  buildPredictions();
  return { atlas: paint };
}
