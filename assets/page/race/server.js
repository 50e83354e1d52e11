/* Writes the sentences on a server that was watched from outside: it reports which drafts it accepted, but not why. */

import { speculativeOf, plainOf, findFirstRejection, reportsDrafts, serverOf, countedOf } from "#page/race/run.js";
import { toFixed } from "#page/race/format.js";
import { fillTemplate, fillText } from "#page/race/text.js";
import { setProperty } from "#page/race/html.js";

/* `view` holds the run on show and its moment; `tinted` and `numbersOf` come from `story.js`. */
export function createServerSentences(texts, view, tinted, numbersOf) {
  const serverTexts = texts.server;

  function sentence(cycle, about) {
    const i = cycle.drafts.findIndex((draft) => draft.state === "rej"),
      n = cycle.drafts.length;
    if (!reportsDrafts(speculativeOf(view.run)))
      return [fillText(cycle.gained === 1 ? serverTexts.arrived_one : serverTexts.arrived, about)];
    if (!n) return [fillText(texts.say.nothing, about)];
    if (!cycle.targetToken) return [fillText(texts.say.ended, about)];
    const own = tinted(cycle.targetToken.state, cycle.targetToken.piece);
    if (i < 0)
      return fillTemplate(n === 1 ? texts.say.bonus_one : texts.say.bonus, {
        ...about,
        bonus: own,
      });
    return [
      findFirstRejection(view.run) === cycle ? texts.say.first : fillText(texts.say.cycle, about),
      ...fillTemplate(serverTexts.rejected, { ...about, kept: i, own }),
      numbersOf(cycle.drafts[i]),
    ];
  }

  /* Sums up a run: gives a speed-up only beside a plain server, and warns if every draft was rejected. */
  function endSentences(figures, values) {
    const totals = speculativeOf(view.run).finished || {},
      drafted = figures.reported ? figures.speculative.drafted : totals.drafted || 0,
      accepted = figures.reported ? figures.speculative.accepted : totals.accepted || 0;
    const outcome = !plainOf(view.run)
      ? serverTexts.alone
      : figures.speedup >= 1.02
        ? serverTexts.faster
        : figures.speedup < 0.98
          ? serverTexts.slower
          : serverTexts.even;
    return [
      fillText(outcome, { ...values, times: figures.speedup ? toFixed(figures.speedup) : "–" }),
      !drafted ? serverTexts.silent : !accepted ? fillText(serverTexts.none_kept, { n: drafted }) : "",
    ];
  }

  return { sentence, endSentences };
}

/* Shows how the cycles of a server were counted, as a badge with its definition. */
export function showCountMethod(texts, node, lane) {
  const serverTexts = texts.server,
    name = serverOf(lane) && lane.finished ? countedOf(lane) || "untold" : "";
  node.hidden = !name;
  if (!name) return;
  setProperty(node, "textContent", serverTexts.counted[name]);
  node.definition = serverTexts.define[name];
  node.dataset.counted = name;
}

/* Writes the server's name and version, from the trace header, for the heading of a lane. */
export const describeServer = (texts, { kind, version, k }) =>
  fillText(k ? texts.server.drafts : texts.server.watched, {
    server: formatServerName({ kind, version }),
    k,
  });
export const formatServerName = ({ kind, version }) => `${kind || ""} ${version || ""}`.trim();
