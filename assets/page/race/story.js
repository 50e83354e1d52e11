/* The sentence on what just happened, and the note below on what both texts have in common. */

import {
  speculativeOf,
  plainOf,
  peerOf,
  isOver,
  isAtEnd,
  wasStopped,
  findFirstRejection,
  isServed,
  isGreedy,
  BLOCK_VERIFICATION,
  SHARED_NOISE,
} from "#page/race/run.js";
import { findTip } from "#page/race/cycle.js";
import { findDivergence } from "#page/race/measure.js";
import { createButton, html } from "#page/race/html.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import {
  formatPiece,
  pickText,
  fillTemplate,
  fillText,
  joinSentences,
  methodOf,
} from "#page/race/text.js";
import { createServerSentences } from "#page/race/server.js";
import { rejectedWords } from "#page/race/spelling.js";

/* The depth at which such a run is expected to win, with its own acceptance and costs; 0 for none. */
export function findWinningDepth(F, k, rest) {
  let best = 0,
    speed = 1.02,
    tokens = 1;
  for (let depth = 1, chance = 1; depth < k; depth++) {
    tokens += chance *= F.alpha;
    const cost = 1 + rest + ((F.passCost - 1 + F.draftCost) * depth) / k;
    if (tokens / cost > speed) [best, speed] = [depth, tokens / cost];
  }
  return best;
}

/* S: the run on show and the moment. `numbersOf(draft)` makes the buttons that lead from a sentence to its numbers.
 * Where `triggerOf()` gives a function, a run that lost offers another one; Gradio's comes after the first screen. */
export function createStory(W, S, numbersOf, triggerOf) {
  const tinted = (state, piece) => html("mark", { class: "sd-" + state }, formatPiece(piece)),
    theirs = createServerSentences(W, S, tinted, numbersOf);

  function sentence(F) {
    const Y = W.say,
      lane = speculativeOf(S.run),
      fatal = [lane, plainOf(S.run)]
        .filter(Boolean)
        .map((one) => one.failures.find((f) => f.fatal))
        .find(Boolean);
    const drafter = lane.started ? lane.started.drafter : "",
      over = isOver(S.run);
    if (over && isAtEnd(S))
      return [
        ...(S.sentRun === S.run ? [html("b", {}, Y.sent), " "] : []),
        ...(fatal ? [fillText(Y.failed, { reason: fatal.reason })] : lastWords(F, drafter)),
      ];
    if (lane.finished && F.a.k === lane.cycles.length && F.a.k) return [Y.spec_done];
    if (!lane.first) return [Y.waiting];
    if (!F.a.k && isServed(S.run)) return [W.server.begun];
    if (!F.a.k) return [begin(lane.started, drafter)];
    return cycleWords(F.a.last, lane.started);
  }

  function begin(started, drafter) {
    const { k } = started || { k: "K" };
    return k === 1 && !methodOf(W.methods, drafter).tree
      ? W.say.start_one
      : fillText(pickText(W.say.start, k === 0 ? "none" : drafter), { k });
  }

  function cycleWords(cycle, started) {
    const Y = W.say,
      n = cycle.drafts.length,
      about = { cycle: cycle.number, n, total: cycle.gained };
    if (started && started.server) return theirs.cycle(cycle, about);
    if (!n) return [fillText(Y.nothing, about)];
    if (!cycle.own) return [fillText(Y.ended, about)];
    if (cycle.tree) return treeWords(cycle, about);
    const i = cycle.drafts.findIndex((draft) => draft.state === "rej"),
      own = tinted(cycle.own.state, cycle.own.piece);
    if (i < 0) return fillTemplate(n === 1 ? Y.bonus_one : Y.bonus, { ...about, bonus: own });
    const left = n - i - 1,
      greedy = started && started.params && started.params.temperature === 0,
      spelled = rejectedWords(speculativeOf(S.run), cycle, i);
    const rule = started ? started.rule : "",
      drafter = started ? started.drafter : "",
      method = methodOf(W.methods, drafter),
      copied = method.kind === "lookup";
    const { small, big } = method.kind === "model" ? Y.by_model : Y.by_other,
      values = {
        draft: tinted("rej", spelled.draft),
        own: tinted(cycle.own.state, spelled.own),
        small,
        big,
      };
    const why = greedy
        ? Y.rejected_greedy
        : pickText(Y.rejected_by, rule) || (copied ? Y.rejected_copy : Y.rejected),
      block = rule === BLOCK_VERIFICATION && !greedy;
    const then = left && block ? Y.left_block : left > 1 ? Y.left_many : left ? Y.left_one : "";
    return [
      findFirstRejection(S.run) === cycle ? Y.first : fillText(Y.cycle, about),
      ...fillTemplate(why, values),
      fillText(then, { n: left }),
      numbersOf(cycle.drafts[i]),
    ];
  }

  /* Of a tree: the path that was kept, and how it ends. */
  function treeWords(cycle, about) {
    const Y = W.say,
      T = W.tree,
      tip = findTip(cycle),
      tried = cycle.drafts.filter((draft) => draft.parent === tip),
      path = [];
    for (let i = tip; i >= 0; i = cycle.drafts[i].parent)
      path.unshift(" ", tinted("acc", cycle.drafts[i].piece));
    const own = tinted(cycle.own.state, cycle.own.piece),
      values = { ...about, path: html("span", {}, path.slice(1)), own, tried: tried.length };
    const kept = fillTemplate(tip < 0 ? T.none : T.kept, values),
      end = fillTemplate(
        !tried.length ? T.bonus : tried.length > 1 ? T.rejected : T.rejected_one,
        values,
      );
    return [
      findFirstRejection(S.run) === cycle ? Y.first : fillText(Y.cycle, about),
      ...kept,
      ...end,
      ...(tried.length ? [numbersOf(tried[0])] : []),
    ];
  }

  function lastWords(F, drafter) {
    const Y = W.say,
      values = {
        n: F.a.written,
        m: F.b.written,
        ts: formatDuration(F.a.time),
        tp: formatDuration(F.b.time),
        ks: F.a.k,
        kp: F.b.k,
        tau: F.tau == null ? "–" : toFixed(F.tau),
      };
    if (wasStopped(S.run)) return [F.a.written ? fillText(Y.stopped, values) : Y.stopped_early];
    if (!F.a.k || (!F.b.k && plainOf(S.run))) return [joinSentences(Y.one_token, endings())];
    if (isServed(S.run)) return [joinSentences(theirs.end(F, values), endings())];
    if (!plainOf(S.run)) return [joinSentences(fillText(Y.alone, values), endings())];
    if (!F.a.drafted)
      return [
        joinSentences(
          fillText(
            methodOf(W.methods, drafter).kind === "lookup" ? Y.inactive_lookup : Y.inactive,
            values,
          ),
          endings(),
        ),
      ];
    const rest = Math.max(0, F.cost - F.draftCost - F.passCost);
    Object.assign(values, {
      cost: toFixed(F.cost),
      drafting: toFixed(F.draftCost),
      checking: toFixed(F.passCost),
      rest: toFixed(rest),
    });
    const lost = F.speedup < 0.98,
      said = fillText(F.speedup >= 1.02 ? Y.done : lost ? Y.slower : Y.even, values);
    return [
      joinSentences(said, peerSays(F), endings()),
      ...(lost ? another(F, speculativeOf(S.run).started, rest) : []),
    ];
  }

  /* After a run of the app's that lost: one press for what is expected to win. */
  function another(F, { k }, rest) {
    const { source, models } = S.run.header;
    if (!triggerOf() || source !== "live" || models.device === "browser") return [];
    const depth = findWinningDepth(F, k, rest),
      label = depth ? fillText(W.say.try_k, { k: depth }) : W.say.try_default;
    return [" ", createButton(label, () => triggerOf()("tried", { k: depth }), "sd-quiet")];
  }

  /* How the peer did; if it failed, its lane says so. */
  function peerSays(F) {
    return F.against && peerOf(S.run).finished
      ? fillText(W.peer.done, {
          n: F.peer.written,
          time: formatDuration(F.peer.time),
          times: toFixed(F.against),
        })
      : "";
  }

  /* Why a lane wrote fewer tokens than it was asked for. */
  function endings() {
    const lanes = [speculativeOf(S.run), plainOf(S.run)].filter(Boolean),
      [a, b] = lanes.map((lane) => lane.finished.reason);
    const one = (who, reason) => fillText(W.reason[reason] || "", { who });
    if (!plainOf(S.run)) return [one(W.lane.speculative, a)];
    if (a === "end" && b === "end" && isGreedy(S.run)) {
      const { at, of } = findDivergence(S.run);
      if (at < 0) return [fillText(W.foot.same, { n: of })];
    }
    return a === b ? [one(W.lane.both, a)] : [one(W.lane.speculative, a), one(W.lane.plain, b)];
  }

  function footnote() {
    const Y = W.foot,
      failure = speculativeOf(S.run).failures.find((f) => !f.fatal);
    return joinSentences(
      agreement(Y),
      failure && fillText(Y.drafter_failed, { cycle: failure.cycle, reason: failure.reason }),
      peerFailed(),
      eagerly(Y),
      Y.keys,
    );
  }

  /* On a GPU, why a lane ran without captured graphs. */
  function eagerly(Y) {
    const lane = [speculativeOf(S.run), plainOf(S.run)].find(
      (lane) => lane && lane.finished && lane.finished.eager,
    );
    return lane && fillText(Y.eager, { who: W.lane[lane.name], reason: lane.finished.eager });
  }

  function peerFailed() {
    const failure = peerOf(S.run) && peerOf(S.run).failures.find((one) => one.fatal);
    return failure && fillText(W.peer.failed, { reason: failure.reason });
  }

  /* What the two texts have in common: the same words, the same odds, or neither. */
  function agreement(Y) {
    const { params, rule, lossless } = speculativeOf(S.run).started || {},
      { at, of } = findDivergence(S.run),
      over = isOver(S.run) && isAtEnd(S);
    if (!params || !of) return "";
    const about = { temperature: params.temperature, n: at < 0 ? of : at + 1 },
      sampled = params.temperature > 0;
    if (sampled && isServed(S.run)) return fillText(W.server.odds, about);
    if (sampled && lossless === false) return fillText(Y.lossy, about);
    if (sampled && rule === SHARED_NOISE)
      return fillText(at >= 0 ? Y.noise_part : over ? Y.noise : Y.noise_so_far, about);
    if (sampled) return fillText(at >= 0 ? Y.sampled : Y.sampled_same, about);
    return joinSentences(
      fillText(at >= 0 ? Y.part : over ? Y.same : Y.same_so_far, about),
      over && peerAgrees(),
    );
  }

  function peerAgrees() {
    const lane = peerOf(S.run),
      { at, of } = lane ? findDivergence(S.run, lane) : { at: -1, of: 0 };
    return of ? fillText(at < 0 ? W.peer.same : W.peer.part, { n: at + 1 }) : "";
  }

  return { sentence, footnote };
}
