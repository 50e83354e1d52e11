/* Fills the table of times and costs below the charts. The peer is a third lane, which another engine computed. */

import { isServed, reportsDrafts, lanesOf } from "#page/race/run.js";
import { gapsOf } from "#page/race/measure.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import { html, createHeadRow, createRow, setProperty } from "#page/race/html.js";

/** @param {PlayerTexts} texts @param {Parts} part @param {View} view
 * @param {(name: string, label: string) => Part} createTerm */
export function createAccount(texts, part, view, createTerm) {
  function paintAccount(/** @type {Figures} */ figures) {
    const labels = texts.figures,
      [speculative, plain, peer] = lanesOf(view.run),
      peerFigures = figures.peer,
      formatShare = (/** @type {number} */ share) => toFixed(100 * share, 0) + "%",
      formatMs = (/** @type {number} */ ms) => (ms ? formatDuration(ms) : "–"),
      formatCost = (/** @type {number | null} */ passes) =>
        passes == null ? "–" : toFixed(passes) + (peer ? "" : " " + labels.passes_unit);
    const tpot = (/** @type {LaneFigures} */ { tokens, endMs }) => (tokens ? formatMs(endMs / tokens) : "–"),
      formatDraftingShare = (/** @type {LaneFigures} */ { draftMs, endMs }) =>
        endMs ? formatShare(draftMs / endMs) : "–";
    const acceptance = (/** @type {LaneFigures} */ { accepted, drafted }) =>
      drafted ? formatShare(accepted / drafted) + (peer ? "" : ` (${accepted}/${drafted})`) : "–";
    /** @param {() => string} figure */
    const peerCell = (figure) => (reportsDrafts(peer) ? figure() : "–"); // some peers report only their tokens
    const onServer = isServed(view.run),
      gap = (/** @type {Lane} */ lane, /** @type {string} */ kind) => {
        const gaps = /** @type {Record<string, number> | null} */ (gapsOf(lane, view.timeMs));
        return gaps ? formatMs(gaps[kind]) : "–";
      },
      draftAcceptance = onServer
        ? figures.draftAcceptance == null
          ? "–"
          : formatShare(figures.draftAcceptance)
        : acceptance(figures.speculative);
    const rows = [
      [
        "ttft",
        formatMs(Number(speculative.prefillEnd) * 1000),
        peer && formatMs(Number(peer.prefillEnd) * 1000),
        plain && formatMs(Number(plain.prefillEnd) * 1000),
      ],
      ["tpot", tpot(figures.speculative), peerFigures && tpot(peerFigures), plain && tpot(figures.plain)],
      ...(onServer
        ? ["median", "longest"].map((kind) => [kind, gap(speculative, kind), plain && gap(plain, kind)])
        : []),
      [
        "passes",
        String(figures.speculative.passes),
        peerFigures && String(peerFigures.passes),
        plain && String(figures.plain.passes),
      ],
      [
        "tau",
        figures.tau == null ? "–" : toFixed(figures.tau),
        peerFigures && toFixed(peerFigures.passes ? peerFigures.tokens / peerFigures.passes : 0),
        plain && "1",
      ],
      ["draftAcceptance", draftAcceptance, peerFigures && peerCell(() => acceptance(peerFigures)), plain && ""],
    ]
      .concat(
        onServer
          ? []
          : [
              [
                "c",
                formatCost(figures.c),
                peerFigures &&
                  peerCell(() => formatCost(figures.inPlainPasses(peerFigures.draftMs, peerFigures.drafted))),
                plain && "",
              ],
              [
                "v",
                formatCost(figures.v),
                peerFigures &&
                  peerCell(() => formatCost(figures.inPlainPasses(peerFigures.checkMs, peerFigures.checks))),
                plain && (figures.plain.passes ? "1" : ""),
              ],
              [
                "drafting",
                formatDraftingShare(figures.speculative),
                peerFigures && peerCell(() => formatDraftingShare(peerFigures)),
                plain && "",
              ],
            ],
      )
      .map((row) => row.filter((cell) => cell != null));
    const titles = [texts.lane.speculative, ...(peer ? [texts.lane.peer] : []), ...(plain ? [texts.lane.plain] : [])];
    if (part.account.rows.length !== rows.length + 1 || part.account.rows[0].cells.length !== titles.length + 1) {
      part.account.replaceChildren(
        createHeadRow([html("td"), ...titles]),
        html(
          "tbody",
          {},
          rows.map(([name]) =>
            createRow(
              createTerm(name, labels[name]),
              titles.map(() => ""),
            ),
          ),
        ),
      );
    }
    rows.forEach(([, ...values], i) =>
      values.forEach((value, j) => setProperty(part.account.tBodies[0].rows[i].cells[j + 1], "textContent", value)),
    );
  }

  return paintAccount;
}
