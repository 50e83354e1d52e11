/* Reads the parts of a run that `log.js` folded from its events: lanes, cycles and how it ended; without a document. */

export const EPS = 1e-6,
  UNNAMED = -1; // the id of a token that a server does not name
export const BLOCK_VERIFICATION = "block verification",
  SHARED_NOISE = "shared noise"; // rules with sentences of their own

/* The totals before the first cycle. */
export const NO_TOTALS = {
  tokens: 0,
  accepted: 0,
  judged: 0,
  drafted: 0,
  trees: 0,
  draftMs: 0,
  passMs: 0,
  checks: 0,
  checkMs: 0,
};

export const speculativeOf = (run) => run.lanes[run.names[0]];
export const plainOf = (run) => (run.names.length > 1 ? run.lanes[run.names[run.names.length - 1]] : null);
export const peerOf = (run) => (run.names.length > 2 ? run.lanes[run.names[1]] : null);

/* A lane may be a server's, watched from outside. Then `started` says whose, and at the end how its cycles are
 * known. */
export const serverOf = (lane) => (lane && lane.started && lane.started.server) || "";
export const isServed = (run) => Boolean((run.header.models || {}).server || serverOf(speculativeOf(run)));
export const countedOf = (lane) => (lane.finished && lane.finished.counted) || "";
export const reportsDrafts = (lane) =>
  // what became of each cycle's drafts
  !serverOf(lane) || ["exact", "merged"].includes(countedOf(lane)) || isPlainServer(lane);
const isPlainServer = (lane) =>
  // a server that does not speculate
  Boolean(serverOf(lane) && lane.finished && lane.finished.reason !== "failed" && !countedOf(lane));

export const isOver = (run) => run.closed || run.names.every((name) => run.lanes[name].finished);
export const wasStopped = (run) => run.closed && !run.names.every((name) => run.lanes[name].finished);

/* How far the replay may go: while the run goes on, no lane may be shown ahead of what the other has done. Servers are
 * watched one after the other. */
export function replayEnd(run) {
  const lanes = run.names.map((name) => run.lanes[name]);
  if (isOver(run) || isServed(run)) return Math.max(...lanes.map((lane) => lane.endMs));
  const running = lanes.filter((lane) => !lane.finished);
  return Math.min(...running.map((lane) => lane.endMs));
}

export const findFirstRejection = (run) =>
  speculativeOf(run).cycles.find((cycle) => cycle.targetToken && cycle.targetToken.state === "res") || null;

/* The lanes in the order of the page: speculative, plain, and the peer if there is one. */
export const lanesOf = (run) => [speculativeOf(run), plainOf(run), peerOf(run)].filter(Boolean);

/* Whether `view` shows the last moment that its run has reached. */
export const isAtEnd = (view) => view.timeMs >= replayEnd(view.run) - EPS;

export const isGreedy = (run) => {
  const { started } = speculativeOf(run);
  return Boolean(started && started.params && started.params.temperature === 0);
};
