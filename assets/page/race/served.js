/* What the page says of a server that was watched from outside: which drafts were kept; the reason is not reported. */

import { speculative, plain, firstRejection, isTold, serverOf, countedOf } from "#page/race/run.js";
import { fixed, fill, words } from "#page/race/text.js";
import { write } from "#page/race/kit.js";

/* S: the run on show and the moment. `tinted(state, piece)` and `numbersOf(draft)` are the story's. */
export function served(W, S, tinted, numbersOf) {
  const V = W.server;

  function cycle(one, about) {
    const i = one.drafts.findIndex((draft) => draft.state === "rej"),
      n = one.drafts.length;
    if (!isTold(speculative(S.run)))
      return [words(one.gained === 1 ? V.arrived_one : V.arrived, about)];
    if (!n) return [words(W.say.nothing, about)];
    if (!one.own) return [words(W.say.ended, about)];
    const own = tinted(one.own.state, one.own.piece);
    if (i < 0) return fill(n === 1 ? W.say.bonus_one : W.say.bonus, { ...about, bonus: own });
    return [
      firstRejection(S.run) === one ? W.say.first : words(W.say.cycle, about),
      ...fill(V.rejected, { ...about, kept: i, own }),
      numbersOf(one.drafts[i]),
    ];
  }

  /* What the run came to; a speed-up only beside a plain server; a warning where every draft was rejected. */
  function end(F, values) {
    const sums = speculative(S.run).finished || {},
      drafted = F.told ? F.a.drafted : sums.drafted || 0,
      kept = F.told ? F.a.accepted : sums.accepted || 0;
    const gain = !plain(S.run)
      ? V.alone
      : F.speedup >= 1.02
        ? V.faster
        : F.speedup < 0.98
          ? V.slower
          : V.even;
    return [
      words(gain, { ...values, times: F.speedup ? fixed(F.speedup) : "–" }),
      !drafted ? V.silent : !kept ? words(V.none_kept, { n: drafted }) : "",
    ];
  }

  return { cycle, end };
}

/* How the cycles of a server are known, as a badge with its sentence. */
export function counted(W, node, lane) {
  const V = W.server,
    name = serverOf(lane) && lane.finished ? countedOf(lane) || "untold" : "";
  node.hidden = !name;
  if (!name) return;
  write(node, "textContent", V.counted[name]);
  node.definition = V.define[name];
  node.dataset.counted = name;
}

/* Beside a lane's name: the server's name and version, from the trace header. */
export const lines = (W, { kind, version, k }) =>
  words(k ? W.server.drafts : W.server.watched, { server: nameOf({ kind, version }), k });
export const nameOf = ({ kind, version }) => `${kind || ""} ${version || ""}`.trim();
