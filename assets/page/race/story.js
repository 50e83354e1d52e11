/* The sentence on what just happened, and the note below on what both texts have in common. */

import {
  speculative,
  plain,
  peerOf,
  isOver,
  atEnd,
  wasStopped,
  firstRejection,
  partAt,
  tipOf,
  isServed,
  isGreedy,
} from "#page/race/run.js";
import { BLOCK, NOISE, button, h } from "#page/race/kit.js";
import { fixed, duration, shown, pick, fill, words, sentences, methodOf } from "#page/race/text.js";
import { served } from "#page/race/served.js";
import { bothWords } from "#page/race/spelling.js";

/* The depth at which such a run is expected to win, with its own acceptance and costs; 0 for none. */
export function winningDepth(F, k, rest) {
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
export function story(W, S, numbersOf, triggerOf) {
  const tinted = (state, piece) => h("mark", { class: "sd-" + state }, shown(piece)),
    theirs = served(W, S, tinted, numbersOf);

  function sentence(F) {
    const Y = W.say,
      lane = speculative(S.run),
      fatal = [lane, plain(S.run)]
        .filter(Boolean)
        .map((one) => one.failures.find((f) => f.fatal))
        .find(Boolean);
    const drafter = lane.started ? lane.started.drafter : "",
      over = isOver(S.run);
    if (over && atEnd(S))
      return [
        ...(S.sentRun === S.run ? [h("b", {}, Y.sent), " "] : []),
        ...(fatal ? [words(Y.failed, { reason: fatal.reason })] : lastWords(F, drafter)),
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
      : words(pick(W.say.start, k === 0 ? "none" : drafter), { k });
  }

  function cycleWords(cycle, started) {
    const Y = W.say,
      n = cycle.drafts.length,
      about = { cycle: cycle.number, n, total: cycle.gained };
    if (started && started.server) return theirs.cycle(cycle, about);
    if (!n) return [words(Y.nothing, about)];
    if (!cycle.own) return [words(Y.ended, about)];
    if (cycle.tree) return treeWords(cycle, about);
    const i = cycle.drafts.findIndex((draft) => draft.state === "rej"),
      own = tinted(cycle.own.state, cycle.own.piece);
    if (i < 0) return fill(n === 1 ? Y.bonus_one : Y.bonus, { ...about, bonus: own });
    const left = n - i - 1,
      greedy = started && started.params && started.params.temperature === 0,
      spelled = bothWords(speculative(S.run), cycle, i);
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
        : pick(Y.rejected_by, rule) || (copied ? Y.rejected_copy : Y.rejected),
      block = rule === BLOCK && !greedy;
    const then = left && block ? Y.left_block : left > 1 ? Y.left_many : left ? Y.left_one : "";
    return [
      firstRejection(S.run) === cycle ? Y.first : words(Y.cycle, about),
      ...fill(why, values),
      words(then, { n: left }),
      numbersOf(cycle.drafts[i]),
    ];
  }

  /* Of a tree: the path that was kept, and how it ends. */
  function treeWords(cycle, about) {
    const Y = W.say,
      T = W.tree,
      tip = tipOf(cycle),
      tried = cycle.drafts.filter((draft) => draft.parent === tip),
      path = [];
    for (let i = tip; i >= 0; i = cycle.drafts[i].parent)
      path.unshift(" ", tinted("acc", cycle.drafts[i].piece));
    const own = tinted(cycle.own.state, cycle.own.piece),
      values = { ...about, path: h("span", {}, path.slice(1)), own, tried: tried.length };
    const kept = fill(tip < 0 ? T.none : T.kept, values),
      end = fill(!tried.length ? T.bonus : tried.length > 1 ? T.rejected : T.rejected_one, values);
    return [
      firstRejection(S.run) === cycle ? Y.first : words(Y.cycle, about),
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
        ts: duration(F.a.time),
        tp: duration(F.b.time),
        ks: F.a.k,
        kp: F.b.k,
        tau: F.tau == null ? "–" : fixed(F.tau),
      };
    if (wasStopped(S.run)) return [F.a.written ? words(Y.stopped, values) : Y.stopped_early];
    if (!F.a.k || (!F.b.k && plain(S.run))) return [sentences(Y.one_token, endings())];
    if (isServed(S.run)) return [sentences(theirs.end(F, values), endings())];
    if (!plain(S.run)) return [sentences(words(Y.alone, values), endings())];
    if (!F.a.drafted)
      return [
        sentences(
          words(
            methodOf(W.methods, drafter).kind === "lookup" ? Y.inactive_lookup : Y.inactive,
            values,
          ),
          endings(),
        ),
      ];
    const rest = Math.max(0, F.cost - F.draftCost - F.passCost);
    Object.assign(values, {
      cost: fixed(F.cost),
      drafting: fixed(F.draftCost),
      checking: fixed(F.passCost),
      rest: fixed(rest),
    });
    const lost = F.speedup < 0.98,
      said = words(F.speedup >= 1.02 ? Y.done : lost ? Y.slower : Y.even, values);
    return [
      sentences(said, peerSays(F), endings()),
      ...(lost ? another(F, speculative(S.run).started, rest) : []),
    ];
  }

  /* After a run of the app's that lost: one press for what is expected to win. */
  function another(F, { k }, rest) {
    const { source, models } = S.run.header;
    if (!triggerOf() || source !== "live" || models.device === "browser") return [];
    const depth = winningDepth(F, k, rest),
      label = depth ? words(W.say.try_k, { k: depth }) : W.say.try_default;
    return [" ", button(label, () => triggerOf()("tried", { k: depth }), "sd-quiet")];
  }

  /* How the peer did; if it failed, its lane says so. */
  function peerSays(F) {
    return F.against && peerOf(S.run).finished
      ? words(W.peer.done, {
          n: F.peer.written,
          time: duration(F.peer.time),
          times: fixed(F.against),
        })
      : "";
  }

  /* Why a lane wrote fewer tokens than it was asked for. */
  function endings() {
    const lanes = [speculative(S.run), plain(S.run)].filter(Boolean),
      [a, b] = lanes.map((lane) => lane.finished.reason);
    const one = (who, reason) => words(W.reason[reason] || "", { who });
    if (!plain(S.run)) return [one(W.lane.speculative, a)];
    if (a === "end" && b === "end" && isGreedy(S.run)) {
      const { at, of } = partAt(S.run);
      if (at < 0) return [words(W.foot.same, { n: of })];
    }
    return a === b ? [one(W.lane.both, a)] : [one(W.lane.speculative, a), one(W.lane.plain, b)];
  }

  function footnote() {
    const Y = W.foot,
      failure = speculative(S.run).failures.find((f) => !f.fatal);
    return sentences(
      agreement(Y),
      failure && words(Y.drafter_failed, { cycle: failure.cycle, reason: failure.reason }),
      peerFailed(),
      eagerly(Y),
      Y.keys,
    );
  }

  /* On a GPU, why a lane ran without captured graphs. */
  function eagerly(Y) {
    const lane = [speculative(S.run), plain(S.run)].find(
      (lane) => lane && lane.finished && lane.finished.eager,
    );
    return lane && words(Y.eager, { who: W.lane[lane.name], reason: lane.finished.eager });
  }

  function peerFailed() {
    const failure = peerOf(S.run) && peerOf(S.run).failures.find((one) => one.fatal);
    return failure && words(W.peer.failed, { reason: failure.reason });
  }

  /* What the two texts have in common: the same words, the same odds, or neither. */
  function agreement(Y) {
    const { params, rule, lossless } = speculative(S.run).started || {},
      { at, of } = partAt(S.run),
      over = isOver(S.run) && atEnd(S);
    if (!params || !of) return "";
    const about = { temperature: params.temperature, n: at < 0 ? of : at + 1 },
      sampled = params.temperature > 0;
    if (sampled && isServed(S.run)) return words(W.server.odds, about);
    if (sampled && lossless === false) return words(Y.lossy, about);
    if (sampled && rule === NOISE)
      return words(at >= 0 ? Y.noise_part : over ? Y.noise : Y.noise_so_far, about);
    if (sampled) return words(at >= 0 ? Y.sampled : Y.sampled_same, about);
    return sentences(
      words(at >= 0 ? Y.part : over ? Y.same : Y.same_so_far, about),
      over && peerAgrees(),
    );
  }

  function peerAgrees() {
    const lane = peerOf(S.run),
      { at, of } = lane ? partAt(S.run, lane) : { at: -1, of: 0 };
    return of ? words(at < 0 ? W.peer.same : W.peer.part, { n: at + 1 }) : "";
  }

  return { sentence, footnote };
}
