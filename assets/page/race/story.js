/* Writes the sentence on what just happened in the run, and the note below it. */

import {
  countLostDrafts,
  speculativeOf,
  startedOf,
  plainOf,
  peerOf,
  isOver,
  isAtEnd,
  wasStopped,
  findFirstRejection,
  isServed,
  BLOCK_VERIFICATION,
  SHARED_NOISE,
} from "#page/race/run.js";
import { findTip } from "#page/race/cycle.js";
import { findDivergence, findWinningDepth, outcomeOf, wasMachineBusy } from "#page/race/measure.js";
import { createButton, html } from "#page/race/html.js";
import { toFixed, formatDuration } from "#page/race/format.js";
import {
  countOfTokens,
  formatPiece,
  makeVisible,
  nameOf,
  pickText,
  fillTemplate,
  fillText,
  joinSentences,
  methodOf,
} from "#page/race/text.js";
import { MIN_TOKENS } from "#page/race/meters.js";
import { isInactive, placeAtStop } from "#page/race/verdict.js";
import { createServerSentences } from "#page/race/server.js";
import { draftWord, targetWord } from "#page/race/spelling.js";

/** `view` holds the run and the time on show. `createNumbersButtons(draft)` creates the buttons that lead to a draft's
 * numbers. `triggerOf()` returns the function that triggers a Gradio event, or null on a saved page.
 * @param {PlayerTexts} texts @param {View} view @param {(draft: Draft) => Part} createNumbersButtons
 * `jump(ms)` moves the replay.
 * @param {() => Trigger | null} triggerOf @param {(ms: number) => void} jump */
export function createStory(texts, view, createNumbersButtons, triggerOf, jump) {
  /* Marks a token. Within a longer word, only the token itself is underlined, because nothing else was judged. */
  const createMark = (/** @type {State} */ state, /** @type {Word} */ { head = "", goesOn, ...token }) => {
      const name = formatPiece(nameOf(texts, token)),
        isWord = /[\p{L}\p{N}]/u.test(name);
      return html(
        "mark",
        { class: "sd-" + state },
        head || goesOn
          ? [head && formatPiece(head), html("u", {}, head ? makeVisible(token.piece) : name), goesOn && "…"]
          : isWord
            ? name
            : `“${name}”`,
      );
    },
    serverStory = createServerSentences(texts, view, createMark, createNumbersButtons),
    space = texts.say.sent.endsWith("。") ? "" : " "; // between sentences

  /** @param {Figures} figures @param {Cycle | null} moving the cycle that the picture shows under way */
  function momentSentence(figures, moving) {
    const says = texts.say,
      lane = speculativeOf(view.run),
      fatal = [lane, plainOf(view.run)]
        .filter(Boolean)
        .map((lane) => lane.failures.find((failure) => failure.fatal))
        .find(Boolean);
    const drafter = lane.started ? lane.started.drafter : "",
      over = isOver(view.run);
    if (over && isAtEnd(view))
      return [
        ...(view.linkedRun === view.run ? [html("b", {}, says.sent), space] : []),
        ...(fatal ? [fillText(says.failed, { reason: fatal.reason })] : endSentences(figures, drafter)),
      ];
    if (lane.finished && figures.speculative.passes === lane.cycles.length && figures.speculative.passes)
      return [says.spec_done];
    if (!lane.prefill) return [says.waiting];
    if (!figures.speculative.passes && isServed(view.run)) return [texts.server.begun];
    if (!figures.speculative.passes) return [startSentence(lane.started, drafter)];
    if (moving && moving.drafts.length) return [fillText(says.next, { cycle: moving.number })];
    return cycleSentence(moving || /** @type {Cycle} */ (figures.speculative.last), lane.started);
  }

  function startSentence(/** @type {Started | null} */ started, /** @type {string} */ drafter) {
    const { k } = started || { k: "K" };
    return k === 1 && !methodOf(texts.methods, drafter).tree
      ? texts.say.start_one
      : fillText(pickText(texts.say.start, k === 0 ? "none" : drafter), { k });
  }

  function cycleSentence(/** @type {Cycle} */ cycle, /** @type {Started|null} */ started) {
    const says = texts.say,
      n = cycle.drafts.length,
      counts = { cycle: cycle.number, n, total: cycle.gained };
    if (started && started.server) return serverStory.cycleSentence(cycle, counts);
    if (!n) return [fillText(says.nothing, counts)];
    if (!cycle.targetToken) return [fillText(says.ended, counts)];
    if (cycle.tree) return treeSentence(cycle, counts);
    const i = cycle.drafts.findIndex((draft) => draft.state === "rejected"),
      lane = speculativeOf(view.run),
      kept = i < 0 ? n : i,
      targetMark = createMark(cycle.targetToken.state, targetWord(lane, cycle, kept));
    if (i < 0) return fillTemplate(n === 1 ? says.bonus_one : says.bonus, { ...counts, bonus: targetMark });
    const later = n - i - 1,
      greedy = started && started.params && started.params.temperature === 0;
    const rule = started ? started.rule : "",
      drafter = started ? started.drafter : "",
      copied = methodOf(texts.methods, drafter).kind === "lookup",
      values = { draft: createMark("rejected", draftWord(lane, cycle, i)), own: targetMark };
    const reason = greedy
        ? says.rejected_greedy
        : pickText(says.rejected_by, rule) || (copied ? says.rejected_copy : says.rejected),
      block = rule === BLOCK_VERIFICATION && !greedy;
    const restText = later && block ? says.left_block : later > 1 ? says.left_many : later ? says.left_one : "";
    return [
      findFirstRejection(view.run) === cycle ? says.first : fillText(says.cycle, counts),
      ...fillTemplate(reason, values),
      fillText(restText, { n: later }),
      createNumbersButtons(cycle.drafts[i]),
    ];
  }

  function treeSentence(/** @type {Cycle} */ cycle, /** @type {Values} */ counts) {
    const says = texts.say,
      treeTexts = texts.tree,
      tip = findTip(cycle),
      siblings = cycle.drafts.filter((draft) => draft.parent === tip),
      path = [];
    for (let i = tip; i >= 0; i = cycle.drafts[i].parent) path.unshift(" ", createMark("accepted", cycle.drafts[i]));
    const { targetToken } = /** @type {Cycle & { targetToken: TargetToken }} */ (cycle),
      targetMark = createMark(targetToken.state, targetToken),
      values = {
        ...counts,
        path: html("span", {}, path.slice(1)),
        own: targetMark,
        tried: siblings.length,
      };
    const acceptedPath = fillTemplate(tip < 0 ? treeTexts.none : treeTexts.kept, values),
      ending = fillTemplate(
        !siblings.length ? treeTexts.bonus : siblings.length > 1 ? treeTexts.rejected : treeTexts.rejected_one,
        values,
      );
    return [
      findFirstRejection(view.run) === cycle ? says.first : fillText(says.cycle, counts),
      ...acceptedPath,
      ...ending,
      ...(siblings.length ? [createNumbersButtons(siblings[0])] : []),
    ];
  }

  function endSentences(/** @type {Figures} */ figures, /** @type {string} */ drafter) {
    const says = texts.say,
      values = {
        n: figures.speculative.written,
        tokens: countOfTokens(texts, figures.speculative.written),
        m: figures.plain.written,
        ts: formatDuration(figures.speculative.endMs),
        tp: formatDuration(figures.plain.endMs),
        ks: figures.speculative.passes,
        kp: figures.plain.passes,
        tau: figures.tau == null ? "–" : toFixed(figures.tau),
      };
    const place = placeAtStop(view.run, figures),
      time = formatDuration(Math.max(figures.speculative.endMs, figures.plain.endMs));
    if (place) return [fillText(says.stopped_at, { ...values, place: says.place[place], time })];
    const short = values.n < MIN_TOKENS ? "short" : "both",
      stopped = !values.n ? "early" : values.ks && isInactive(view.run, figures) ? "none" : short;
    if (wasStopped(view.run)) return [fillText(says.stopped[stopped], values)];
    if (!figures.speculative.passes || (!figures.plain.passes && plainOf(view.run)))
      return [joinSentences(says.one_token, endReasons())];
    if (isServed(view.run)) return [joinSentences(serverStory.endSentences(figures, values), endReasons())];
    if (!plainOf(view.run)) return [joinSentences(fillText(says.alone, values), endReasons())];
    const outcome = outcomeOf(figures.speedup);
    if (wasMachineBusy(view.run) && outcome !== "slower")
      return [joinSentences(fillText(says.done, values), endReasons()), ...offerRejection()];
    if (!figures.speculative.drafted)
      return [
        joinSentences(
          fillText(methodOf(texts.methods, drafter).kind === "lookup" ? says.inactive_lookup : says.done, values),
          endReasons(),
        ),
      ];
    const [cost, draftCost, passCost] = [figures.cost, figures.draftCost, figures.passCost].map(Number),
      otherCost = Math.max(0, cost - draftCost - passCost);
    Object.assign(values, {
      cost: toFixed(cost),
      drafting: toFixed(draftCost),
      checking: toFixed(passCost),
      rest: toFixed(otherCost),
    });
    const sentence = fillText(says[outcome && outcome !== "faster" ? outcome : "done"], values);
    return [
      joinSentences(sentence, peerSentence(figures), endReasons()),
      ...(outcome === "slower" ? offerAnother(figures, otherCost) : offerRejection()),
    ];
  }

  function offerRejection() {
    const rejection = findFirstRejection(view.run);
    return rejection
      ? [space, createButton(texts.say.see_first, () => jump(rejection.endMs), "sd-link sd-inline")]
      : [];
  }

  function offerAnother(/** @type {Figures} */ figures, /** @type {number} */ otherCost) {
    const { source, models = {} } = view.run.header,
      trigger = triggerOf();
    if (!trigger || source !== "live" || models.device === "browser") return [];
    const { k = 0 } = startedOf(view.run),
      depth = findWinningDepth(figures, k, otherCost),
      label = depth ? fillText(texts.say.try_k, { k: depth }) : texts.say.try_default;
    return [space, createButton(label, () => trigger("tried", { k: depth }))];
  }

  function peerSentence(/** @type {Figures} */ figures) {
    return figures.peer && figures.peerSpeedup && peerOf(view.run)?.finished
      ? fillText(texts.peer.done, {
          n: figures.peer.written,
          time: formatDuration(figures.peer.endMs),
          times: toFixed(figures.peerSpeedup),
        })
      : "";
  }

  function endReasons() {
    const lanes = [speculativeOf(view.run), plainOf(view.run)].filter(Boolean),
      [a, b] = lanes.map((lane) => lane.finished?.reason);
    /** @param {string} who @param {string} reason */
    const explain = (who, reason) => fillText(texts.reason[reason] || "", { who });
    if (!plainOf(view.run)) return [explain(texts.lane.speculative, a)];
    return a === b ? [explain(texts.lane.both, a)] : [explain(texts.lane.speculative, a), explain(texts.lane.plain, b)];
  }

  function footnote() {
    const says = texts.foot,
      failure = speculativeOf(view.run).failures.find((failure) => !failure.fatal);
    return [
      joinSentences(
        agreementSentence(says),
        failure && fillText(says.drafter_failed, { cycle: failure.cycle, reason: failure.reason }),
        peerFailure(),
        eagerReason(says),
      ),
      space,
      html("span", { class: "sd-keys" }, says.keys),
    ];
  }

  function eagerReason(/** @type {any} */ says) {
    const lane = [speculativeOf(view.run), plainOf(view.run)].find(
      (lane) => lane && lane.finished && lane.finished.eager,
    );
    return lane && fillText(says.eager, { who: texts.lane[lane.name], reason: lane.finished?.eager });
  }

  function peerFailure() {
    const failure = peerOf(view.run)?.failures.find((failure) => failure.fatal);
    return failure && fillText(texts.peer.failed, { reason: failure.reason });
  }

  /* Says whether the two texts have the same words, come from the same distribution, or neither. */
  function agreementSentence(/** @type {any} */ says) {
    const { params, rule, lossless } = speculativeOf(view.run).started || {},
      over = isOver(view.run) && isAtEnd(view),
      { at, compared } = findDivergence(view.run, speculativeOf(view.run), over ? Infinity : view.timeMs);
    if (!params || !compared) return "";
    const counts = { temperature: params.temperature, n: at < 0 ? compared : at + 1, odds: says.odds },
      sampled = params.temperature > 0;
    if (sampled && isServed(view.run)) return fillText(texts.server.odds, counts);
    if (sampled && lossless === false) return fillText(says.lossy, counts);
    if (countLostDrafts(view.run)) return fillText(says.unknown, counts);
    if (sampled && rule === SHARED_NOISE)
      return fillText(at >= 0 ? says.noise_part : over ? says.noise : says.noise_so_far, counts);
    if (sampled) return fillText(at >= 0 ? says.sampled : over ? says.sampled_same : says.sampled_so_far, counts);
    return joinSentences(
      fillText(at >= 0 ? says.part : over ? says.same : says.same_so_far, counts),
      over && peerAgreement(),
    );
  }

  function peerAgreement() {
    const lane = peerOf(view.run),
      { at, compared } = lane ? findDivergence(view.run, lane) : { at: -1, compared: 0 };
    return compared ? fillText(at < 0 ? texts.peer.same : texts.peer.part, { n: at + 1 }) : "";
  }

  return { momentSentence, footnote };
}
