/* Handles a choice in a menu for Gradio: updates the lines below the menus, in the browser. A drafter that the engine
 * "this browser" lacks moves a run to the page's own, until one is chosen that it has. */

import { joinSentences } from "#page/race/text.js";

/** @param {string} [text] */
const info = (text) => ({ __type__: "update", info: text || "" });
let hasMoved = false;

/**
 * @param {{
 *   drafters: Record<string, Record<string, Record<string, string>>>,
 *   rules: Record<string, string>,
 *   peers: Record<string, string>,
 *   same: Record<string, string>,
 *   here: Record<string, string[]>,
 *   moved: string,
 * }} texts `drafters`: lines by family, rule and drafter; `same`: maps a family to another with the same lines;
 * `here`: what the browser drafts with
 */
export const handler =
  ({ drafters, rules, peers, same, here, moved }) =>
  (/** @type {string[]} */ ...chosen) => {
    const [drafter, rule, family, engine] = chosen;
    const lines = drafters[same[family] || family] || drafters[""],
      isHere = ["default", ...(here[family] || here.embedded || [])].includes(drafter),
      value = isHere && hasMoved ? "browser" : !isHere && engine === "browser" ? "own" : engine;
    hasMoved = !isHere && value === "own" && (hasMoved || engine !== value);
    return [
      info(joinSentences([lines[rule][drafter], hasMoved && moved])),
      info(rules[rule]),
      info(peers[drafter]),
      { __type__: "update", ...(value !== engine && { value }) },
    ];
  };
