/* Reads one cycle of a run; without a document. */

/* The last token of the path that was kept, -1 if none was. */
export const findTip = (cycle) => cycle.drafts.reduce((tip, draft, i) => (draft.state === "acc" ? i : tip), -1);

/* When a cycle's first token shows. */
export const firstTokenMs = (cycle) => Math.min(cycle.endMs, ...cycle.drafts.map((draft) => draft.readyMs));

/* The deepest level of a cycle's tree. */
export const depthOf = (cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));

/* Whether a coin decides about this draft: the chance is neither near 0 nor near 1. */
export const isCoinDecided = ({ p, q }) => p > 0.1 * q && p < 0.9 * q;
