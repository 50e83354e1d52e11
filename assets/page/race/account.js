/* The table of times and costs below the charts. */

import { isServed, reportsDrafts, lanesOf } from "#page/race/run.js";
import { gapsOf } from "#page/race/measure.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import { html, createHeadRow, createRow, setProperty } from "#page/race/html.js";

export function createAccount(W, part, S, term) {
  function paintAccount(F) {
    const U = W.figures,
      [A, B, P] = lanesOf(S.run),
      p = F.peer,
      ms = (v) => (v ? formatDuration(v) : "–"),
      ratio = (v) => (v == null ? "–" : toFixed(v) + (P ? "" : " " + U.passes_unit));
    const tpot = (at) => (at.tokens ? ms(at.time / at.tokens) : "–"),
      drafting = (at) => (at.time ? toFixed((at.drafting / at.time) * 100, 0) + " %" : "–");
    const kept = (at) =>
      at.drafted
        ? toFixed(at.accepted / at.drafted) + (P ? "" : ` (${at.accepted}/${at.drafted})`)
        : "–";
    const ofPeer = (figure) => (reportsDrafts(P) ? figure() : "–"); // it may tell its tokens alone
    const served = isServed(S.run),
      gap = (lane, which) => {
        const found = gapsOf(lane, S.t);
        return found ? ms(found[which]) : "–";
      },
      dar = served ? (F.dar == null ? "–" : toFixed(F.dar)) : kept(F.a);
    const rows = [
      ["ttft", ms(A.zero * 1000), P && ms(P.zero * 1000), B && ms(B.zero * 1000)],
      ["tpot", tpot(F.a), p && tpot(p), B && tpot(F.b)],
      ...(served
        ? ["median", "longest"].map((which) => [which, gap(A, which), B && gap(B, which)])
        : []),
      ["passes", String(F.a.k), p && String(p.k), B && String(F.b.k)],
      [
        "tau",
        F.tau == null ? "–" : toFixed(F.tau),
        p && toFixed(p.k ? p.tokens / p.k : 0),
        B && "1",
      ],
      ["dar", dar, p && ofPeer(() => kept(p)), B && ""],
    ]
      .concat(
        served
          ? []
          : [
              [
                "c",
                ratio(F.c),
                p && ofPeer(() => ratio(F.perPass(p.drafting, p.drafted))),
                B && "",
              ],
              [
                "v",
                ratio(F.v),
                p && ofPeer(() => ratio(F.perPass(p.checking, p.checks))),
                B && (F.b.k ? "1" : ""),
              ],
              ["drafting", drafting(F.a), p && ofPeer(() => drafting(p)), B && ""],
            ],
      )
      .map((row) => row.filter((cell) => cell != null));
    const heads = [W.lane.speculative, ...(P ? [W.lane.peer] : []), ...(B ? [W.lane.plain] : [])];
    if (
      part.account.rows.length !== rows.length + 1 ||
      part.account.rows[0].cells.length !== heads.length + 1
    ) {
      part.account.replaceChildren(
        createHeadRow([html("td"), ...heads]),
        html(
          "tbody",
          {},
          rows.map(([name]) =>
            createRow(
              term(name, U[name]),
              heads.map(() => ""),
            ),
          ),
        ),
      );
    }
    rows.forEach(([, ...values], i) =>
      values.forEach((value, j) =>
        setProperty(part.account.tBodies[0].rows[i].cells[j + 1], "textContent", value),
      ),
    );
  }

  return paintAccount;
}
