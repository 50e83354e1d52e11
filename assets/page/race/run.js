/* Reads a run that `log.js` built: finds its lanes, and whether it is over, greedy, or a server's. Uses no DOM. */

export const EPS = 1e-6, // ms; times that differ by less count as equal
  UNNAMED = -1; // stands for the id of a token of which a server reports only the text
export const BLOCK_VERIFICATION = "block verification",
  SHARED_NOISE = "shared noise"; // the page has special texts for these two rules

/* A link can hold a run, after this prefix of its fragment. */
export const RUN_PREFIX = "run=";
export const carriesRun = (/** @type {string} */ hash) => hash.startsWith("#" + RUN_PREFIX);

export const NO_TOTALS = {
  tokens: 0,
  accepted: 0,
  judged: 0,
  drafted: 0,
  trees: 0,
  draftMs: 0,
  passMs: 0,
  checks: 0, // passes that verified at least one draft
  checkMs: 0,
};

const OWN_DRAWS = ["sample and match", SHARED_NOISE];

export const speculativeOf = (/** @type {Run} */ run) => run.lanes[run.names[0]];
/** @param {Run} run */
export const plainOf = (run) => (run.names.length > 1 ? run.lanes[run.names[run.names.length - 1]] : null);
export const peerOf = (/** @type {Run} */ run) => (run.names.length > 2 ? run.lanes[run.names[1]] : null);

export const startedOf = (/** @type {Run} */ run) => /** @type {Partial<Started>} */ (speculativeOf(run).started || {});

/* Counts the cycles in which the drafter failed while sampling, as `lost_drafts` of `traces/cycle.py` does: the text
 * may then no longer follow the target's distribution, unless it consists of the target's own draws. */
export function countLostDrafts(/** @type {Run} */ run) {
  const { params, rule = "" } = startedOf(run);
  if (!params || params.temperature === 0 || OWN_DRAWS.includes(rule)) return 0;
  return speculativeOf(run).failures.filter((failure) => failure.where === "drafter" && failure.cycle).length;
}

/* A lane can belong to a server, such as vLLM, that is watched from outside. */
export const serverOf = (/** @type {Lane} */ lane) => (lane && lane.started && lane.started.server) || "";
/** @param {Run} run */
export const isServed = (run) => Boolean((run.header.models || {}).server || serverOf(speculativeOf(run)));
export const countMethodOf = (/** @type {Lane} */ lane) => (lane.finished && lane.finished.counted) || "";
/* Returns whether the drafts of each cycle are known. */
export const reportsDrafts = (/** @type {Lane} */ lane) =>
  !serverOf(lane) || ["exact", "merged"].includes(countMethodOf(lane)) || isPlainServer(lane);
const isPlainServer = (/** @type {Lane} */ lane) =>
  Boolean(serverOf(lane) && lane.finished && lane.finished.reason !== "failed" && !countMethodOf(lane));

export const isOver = (/** @type {Run} */ run) => run.closed || run.names.every((name) => run.lanes[name].finished);
/** @param {Run} run */
export const wasStopped = (run) => run.closed && !run.names.every((name) => run.lanes[name].finished);

/* Returns the time in ms up to which the replay can play. While lanes run, this is the time that all running lanes have
 * reached. A server runs one lane after another, so its latest lane counts. */
export function replayEnd(/** @type {Run} */ run) {
  const lanes = run.names.map((name) => run.lanes[name]);
  if (isOver(run) || isServed(run)) return Math.max(...lanes.map((lane) => lane.endMs));
  const running = lanes.filter((lane) => !lane.finished);
  return Math.min(...running.map((lane) => lane.endMs));
}

export const findFirstRejection = (/** @type {Run} */ run) =>
  speculativeOf(run).cycles.find((cycle) => cycle.targetToken && cycle.targetToken.state === "resampled") || null;

/** Returns the lanes in the order of the page: speculative, plain, and the peer (another engine), if they exist.
 * @param {Run} run */
export const lanesOf = (run) => /** @type {Lane[]} */ ([speculativeOf(run), plainOf(run), peerOf(run)].filter(Boolean));

export const isAtEnd = (/** @type {View} */ view) => view.timeMs >= replayEnd(view.run) - EPS;

export const isGreedy = (/** @type {Run} */ run) => {
  const { started } = speculativeOf(run);
  return Boolean(started && started.params && started.params.temperature === 0);
};
