/* Computes properties of one cycle of a run (see `log.js`); uses no DOM. */

/** Returns the index of the last accepted draft, or -1 if none was accepted. @param {Cycle} cycle */
export const findTip = (cycle) => cycle.drafts.reduce((tip, draft, i) => (draft.state === "accepted" ? i : tip), -1);

/** Returns the time at which a cycle's first token appears, in ms. @param {Cycle} cycle */
export const firstTokenMs = (cycle) => Math.min(cycle.endMs, ...cycle.drafts.map((draft) => draft.readyMs));

export const depthOf = (/** @type {Cycle} */ cycle) => Math.max(0, ...cycle.drafts.map((draft) => draft.level));

/* Returns whether both verdicts on a draft are likely: p / q lies between 0.1 and 0.9. */
export const isCoinDecided = (/** @type {Draft} */ { p, q }) => p > 0.1 * q && p < 0.9 * q;
