/* What the page says of a server that was watched from outside: which drafts were kept; the reason is not reported. */

import {
  speculativeOf,
  plainOf,
  findFirstRejection,
  reportsDrafts,
  serverOf,
  countedOf,
} from "#page/race/run.js";
import { toFixed } from "#page/race/format.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { setProperty } from "#page/race/html.js";

/* S: the run on show and the moment. `tinted(state, piece)` and `numbersOf(draft)` are the story's. */
export function createServerSentences(W, S, tinted, numbersOf) {
  const V = W.server;

  function cycle(one, about) {
    const i = one.drafts.findIndex((draft) => draft.state === "rej"),
      n = one.drafts.length;
    if (!reportsDrafts(speculativeOf(S.run)))
      return [fillText(one.gained === 1 ? V.arrived_one : V.arrived, about)];
    if (!n) return [fillText(W.say.nothing, about)];
    if (!one.own) return [fillText(W.say.ended, about)];
    const own = tinted(one.own.state, one.own.piece);
    if (i < 0)
      return fillTemplate(n === 1 ? W.say.bonus_one : W.say.bonus, { ...about, bonus: own });
    return [
      findFirstRejection(S.run) === one ? W.say.first : fillText(W.say.cycle, about),
      ...fillTemplate(V.rejected, { ...about, kept: i, own }),
      numbersOf(one.drafts[i]),
    ];
  }

  /* What the run came to; a speed-up only beside a plain server; a warning where every draft was rejected. */
  function end(F, values) {
    const sums = speculativeOf(S.run).finished || {},
      drafted = F.told ? F.a.drafted : sums.drafted || 0,
      kept = F.told ? F.a.accepted : sums.accepted || 0;
    const gain = !plainOf(S.run)
      ? V.alone
      : F.speedup >= 1.02
        ? V.faster
        : F.speedup < 0.98
          ? V.slower
          : V.even;
    return [
      fillText(gain, { ...values, times: F.speedup ? toFixed(F.speedup) : "–" }),
      !drafted ? V.silent : !kept ? fillText(V.none_kept, { n: drafted }) : "",
    ];
  }

  return { cycle, end };
}

/* How the cycles of a server are known, as a badge with its sentence. */
export function showCountMethod(W, node, lane) {
  const V = W.server,
    name = serverOf(lane) && lane.finished ? countedOf(lane) || "untold" : "";
  node.hidden = !name;
  if (!name) return;
  setProperty(node, "textContent", V.counted[name]);
  node.definition = V.define[name];
  node.dataset.counted = name;
}

/* Beside a lane's name: the server's name and version, from the trace header. */
export const describeServer = (W, { kind, version, k }) =>
  fillText(k ? W.server.drafts : W.server.watched, {
    server: formatServerName({ kind, version }),
    k,
  });
export const formatServerName = ({ kind, version }) => `${kind || ""} ${version || ""}`.trim();
