/* A handler for Gradio: the lines below the menus follow the choices, in the browser. Whether a drafter is lossless
 * depends on the rule, too. */

/** @param {string | undefined} text */
const info = (text) => ({ __type__: "update", info: text || "" });

/**
 * @param {{
 *   drafters: Record<string, Record<string, Record<string, string>>>,
 *   rules: Record<string, string>,
 *   peers: Record<string, string>,
 *   same: Record<string, string>,
 * }} lines of drafters by family ("": any other) and rule; `same`: whose lines another family has
 */
export const handler =
  ({ drafters, rules, peers, same }) =>
  (/** @type {string} */ drafter, /** @type {string} */ rule, /** @type {string} */ family) => {
    const known = drafters[same[family] || family] || drafters[""];
    return [info(known[rule][drafter]), info(rules[rule]), info(peers[drafter])];
  };
