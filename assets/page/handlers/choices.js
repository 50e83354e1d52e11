/* Handles a choice in a menu for Gradio: updates the lines below the menus, in the browser. */

/** @param {string | undefined} text */
const info = (text) => ({ __type__: "update", info: text || "" });

/**
 * @param {{
 *   drafters: Record<string, Record<string, Record<string, string>>>,
 *   rules: Record<string, string>,
 *   peers: Record<string, string>,
 *   same: Record<string, string>,
 * }} texts `drafters`: lines by family, rule and drafter; `same`: maps a family to another with the same lines
 */
export const handler =
  ({ drafters, rules, peers, same }) =>
  (/** @type {string} */ drafter, /** @type {string} */ rule, /** @type {string} */ family) => {
    const lines = drafters[same[family] || family] || drafters[""];
    return [info(lines[rule][drafter]), info(rules[rule]), info(peers[drafter])];
  };
