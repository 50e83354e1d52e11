/* A server of others: its certificate as it grows. */

import { h, table, tableRow } from "#page/race/kit.js";
import { words, sentences, visible, chance } from "#page/race/text.js";
import { count, figure } from "#page/lossless/reading.js";
import { form } from "#page/lossless/form.js";

const KINDS = {
  lossless: "good",
  "not lossless": "bad",
  "speculation never ran": "bad",
  "cannot be tested": "missed",
};

const contextsIn = (certificate) => certificate.contexts.filter((one) => one.greedy);
const red = (one) => (one.red || []).some(Boolean);
const shows = (needed, draws) => needed !== null && needed <= draws;

/* How much of all texts was drawn. */
export const share = (certificate) =>
  certificate.draws && certificate.contexts.length
    ? certificate.contexts.reduce((sum, one) => sum + one.done, 0) /
      (certificate.draws * certificate.contexts.length)
    : 0;

/* `servers`: what may be named. */
export function examination(W, part, servers, { stamp, verdict, body }) {
  const V = W.server;

  const doing = (certificate) =>
    words(certificate.seconds_left === null ? "{doing}" : V.left, {
      doing: certificate.doing,
      seconds: count(certificate.seconds_left || 0),
    });
  const kindOf = (certificate) => KINDS[certificate.verdict] || "missed";

  function sign(certificate, running) {
    const known = certificate && certificate.verdict,
      title = known
        ? V.verdicts[certificate.verdict]
        : running
          ? V.testing
          : certificate
            ? V.stopped_title
            : V.ready;
    const said = known
      ? sentences(certificate.sentences)
      : running
        ? V.wait
        : certificate
          ? V.unknown
          : V.lead;
    verdict(certificate ? kindOf(certificate) : "missed", title, said, title);
  }

  function paint(certificate, running) {
    sign(certificate, running);
    if (!certificate) part.place.textContent = "";
    else {
      const { kind, version, model } = certificate.server,
        after =
          certificate.verdict && !running
            ? words(V.after, { seconds: count(certificate.seconds) })
            : "";
      part.place.textContent = sentences(
        words(certificate.draws ? V.place : V.place_greedy, {
          kind,
          version,
          model: visible(model),
          k: certificate.server.k ?? "–",
          temperature: certificate.temperature,
          against: certificate.against,
        }),
        after,
        certificate.notes,
      );
    }
    part.contexts.replaceChildren(
      ...(certificate ? contextsIn(certificate).map((one) => context(certificate, one)) : []),
    );
  }

  function context(certificate, one) {
    const parted = one.greedy.gap !== null && !one.near_tie,
      bad = red(one) || parted,
      name = V.contexts[one.name] || one.name;
    const done = certificate.draws
      ? words(V.done, { done: count(one.done), draws: count(certificate.draws) })
      : V.greedy_only;
    const pending = certificate.draws && !one.tests,
      kind = bad ? "bad" : pending ? "missed" : "good";
    return h(
      "section",
      { class: "sd-level", "data-kind": kind },
      pending && !bad ? h("span", {}) : stamp(kind, true),
      body(
        name,
        done,
        words(V.text, {
          text: visible(typeof one.text === "string" ? one.text.slice(-60) : one.text.join(" ")),
        }),
        one.tests ? tests(one) : null,
        facts(certificate, one),
      ),
    );
  }

  function tests(one) {
    const rows = one.tests.map(([g, degrees, tail], i) =>
      tableRow(
        (one.red[i] ? "✗ " : "") + (i + 1),
        [
          g === null ? "∞" : g.toFixed(1),
          String(degrees),
          tail < 1e-9 ? "< 1e−9" : tail > 0.995 ? "1" : figure(tail),
        ],
        one.red[i] ? "sd-out" : null,
      ),
    );
    return table("sd-tests", V.columns, rows);
  }

  function facts(certificate, one) {
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
          draws: count(certificate.draws),
          shown: Object.values(one.needed).filter((n) => shows(n, certificate.draws)).length,
          known: Object.keys(one.needed).length,
        }),
      ]);
    return h(
      "dl",
      { class: "sd-facts" },
      rows.map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]),
    );
  }

  return { ...form(W, part, servers), paint, doing, share };
}
