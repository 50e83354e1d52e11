/* Handles a choice for Gradio: updates the lines below the menus in the browser. Whether a drafter is lossless depends
 * on the rule, too. */

/** @param {string | undefined} text */
const info = (text) => ({ __type__: "update", info: text || "" });

/**
 * @param {{
 *   drafters: Record<string, Record<string, Record<string, string>>>,
 *   rules: Record<string, string>,
 *   peers: Record<string, string>,
 *   same: Record<string, string>,
 * }} texts the lines of drafters by family ("" is any other) and rule; `same` maps a family to one with equal lines
 */
export const handler =
  ({ drafters, rules, peers, same }) =>
  (/** @type {string} */ drafter, /** @type {string} */ rule, /** @type {string} */ family) => {
    const lines = drafters[same[family] || family] || drafters[""];
    return [info(lines[rule][drafter]), info(rules[rule]), info(peers[drafter])];
  };
