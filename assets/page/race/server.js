/* Writes the sentences on a server watched from outside. It may report which drafts it accepted, never why. */

import { speculativeOf, plainOf, findFirstRejection, reportsDrafts, serverOf, countMethodOf } from "#page/race/run.js";
import { outcomeOf } from "#page/race/measure.js";
import { toFixed } from "#page/race/format.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { setProperty } from "#page/race/html.js";

/** `view` holds the run and the time on show. `createMark` creates a coloured token. `createNumbersButtons` creates the
 * buttons that lead to a draft's numbers. @param {PlayerTexts} texts @param {View} view
 * @param {(state: State, word: Word) => Part} createMark @param {(draft: Draft) => Part} createNumbersButtons */
export function createServerSentences(texts, view, createMark, createNumbersButtons) {
  const serverTexts = texts.server;

  function cycleSentence(/** @type {Cycle} */ cycle, /** @type {Values} */ counts) {
    const rejectedAt = cycle.drafts.findIndex((draft) => draft.state === "rejected"),
      n = cycle.drafts.length;
    if (!reportsDrafts(speculativeOf(view.run)))
      return [fillText(cycle.gained === 1 ? serverTexts.arrived_one : serverTexts.arrived, counts)];
    if (!n) return [fillText(texts.say.nothing, counts)];
    if (!cycle.targetToken) return [fillText(texts.say.ended, counts)];
    const targetMark = createMark(cycle.targetToken.state, cycle.targetToken);
    if (rejectedAt < 0)
      return fillTemplate(n === 1 ? texts.say.bonus_one : texts.say.bonus, {
        ...counts,
        bonus: targetMark,
      });
    return [
      findFirstRejection(view.run) === cycle ? texts.say.first : fillText(texts.say.cycle, counts),
      ...fillTemplate(serverTexts.rejected, { ...counts, kept: rejectedAt, own: targetMark }),
      createNumbersButtons(cycle.drafts[rejectedAt]),
    ];
  }

  /* Sums up a run; warns if no draft was reported or accepted. */
  function endSentences(/** @type {Figures} */ figures, /** @type {Values} */ values) {
    const totals = /** @type {Record<string, number>} */ (speculativeOf(view.run).finished || {}),
      drafted = figures.reported ? figures.speculative.drafted : totals.drafted || 0,
      accepted = figures.reported ? figures.speculative.accepted : totals.accepted || 0;
    const outcome = plainOf(view.run) ? serverTexts[outcomeOf(figures.speedup) || "even"] : serverTexts.alone;
    return [
      fillText(outcome, { ...values, times: figures.speedup ? toFixed(figures.speedup) : "–" }),
      !drafted ? serverTexts.silent : !accepted ? fillText(serverTexts.none_kept, { n: drafted }) : "",
    ];
  }

  return { cycleSentence, endSentences };
}

export function showCountMethod(/** @type {PlayerTexts} */ texts, /** @type {Part} */ node, /** @type {Lane} */ lane) {
  const serverTexts = texts.server,
    name = serverOf(lane) && lane.finished ? countMethodOf(lane) || "no_speculation" : "";
  node.hidden = !name;
  if (!name) return;
  setProperty(node, "textContent", serverTexts.counted[name]);
  node.definition = serverTexts.define[name];
  node.dataset.counted = name;
}

/** Returns the text for a lane's heading: the server's name, its version and, if it speculates, its draft length.
 * @param {PlayerTexts} texts @param {Record<string, any>} server */
export const describeServer = (texts, { kind, version, k }) =>
  fillText(k ? texts.server.drafts : texts.server.watched, {
    server: formatServerName({ kind, version }),
    k,
  });
/** @param {Record<string, any>} server */
export const formatServerName = ({ kind, version }) => `${kind || ""} ${version || ""}`.trim();
