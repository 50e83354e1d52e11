/* Draws the summary of a finished run: a bar for each lane's time, and buttons that save a picture and copy a link. */

import { html, copyText, showAnswer, saveFile } from "#page/race/html.js";
import { summarize, drawPicture } from "#page/race/picture.js";

/** `root` is the player's element. `traces/traces.js` sets `root.share`, which creates a link to the run.
 * @param {Part} box @param {PlayerTexts} texts @param {Player} root */
export function createFinish(box, texts, root) {
  return function draw(/** @type {Run} */ run) {
    const { headline, title, rows, longest } = summarize(texts, run);
    const bars = rows.map((row) =>
      html(
        "div",
        { class: "sd-finrow" },
        html("span", {}, row.name),
        html(
          "div",
          { class: "sd-fintrack" },
          html("i", { class: "sd-fin-" + row.kind, style: `width:${(100 * row.time) / longest}%` }),
          html("b", {}, row.label),
        ),
      ),
    );
    const button = (/** @type {"picture" | "link"} */ name, /** @type {(node: Part) => unknown} */ act) => {
      const node = html("button", { type: "button", class: "sd-link" }, texts.finish[name]);
      node.onclick = () => act(node);
      return node;
    };
    const { share } = root;
    box.replaceChildren(
      html(
        "div",
        { class: "sd-finish" },
        html("h2", { title }, headline || title),
        bars,
        html(
          "p",
          { class: "sd-finacts" },
          button("picture", async () => saveFile(await drawPicture(texts, run), run, ".png")),
          share
            ? button("link", async (node) => {
                const { link, whole } = await share();
                const answer = whole ? texts.finish.copied : texts.finish.copied_settings;
                showAnswer(node, (await copyText(link)) ? answer : texts.finish.refused);
              })
            : null,
        ),
      ),
    );
  };
}
