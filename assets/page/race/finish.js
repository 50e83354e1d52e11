/* Draws the summary of a finished run: the verdict, a bar for each lane, the clock, and what can be done next. */

import { html, createButton, copyText, showAnswer, saveFile } from "#page/race/html.js";
import { drawPicture } from "#page/race/picture.js";
import { summarize } from "#page/race/verdict.js";

/** `root` is the player's element. `traces/traces.js` sets `root.share`, which creates a link to the run. `againOf`
 * returns what starts a run again with the same settings, or null where that is impossible.
 * @param {Part} box @param {PlayerTexts} texts @param {Player} root @param {(run: Run) => Act | null} againOf */
export function createFinish(box, texts, root, againOf) {
  return function draw(/** @type {Run} */ run) {
    const { headline, clock, busy, rows } = summarize(texts, run),
      labels = texts.finish,
      again = busy ? againOf(run) : null;
    const bars = rows.map(({ name, kind, share, label }) =>
      html(
        "div",
        { class: "sd-finrow" },
        html("span", {}, name),
        html(
          "div",
          { class: "sd-fintrack" },
          html("i", { class: "sd-fin-" + kind, style: `width:${100 * share}%` }),
          html("b", {}, label),
        ),
      ),
    );
    async function copyLink() {
      if (!root.share) return;
      const { link, whole } = await root.share(),
        answer = whole ? labels.copied : labels.copied_settings;
      showAnswer(linkButton, (await copyText(link)) ? answer : labels.refused);
    }
    const linkButton = createButton(labels.link, copyLink, "sd-link"),
      savePicture = async () => saveFile(await drawPicture(texts, run), run, ".png");
    box.replaceChildren(
      html(
        "div",
        { class: "sd-finish" },
        html("h2", {}, headline),
        bars,
        html(
          "p",
          { class: "sd-finacts" },
          clock && html(busy ? "span" : "b", { class: "sd-finclock" }, clock),
          again && createButton(labels.again, again, "sd-btn sd-small"),
          createButton(labels.picture, savePicture, "sd-link"),
          root.share ? linkButton : null,
        ),
      ),
    );
  };
}
