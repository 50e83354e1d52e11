/* Draws the summary of a finished run: the verdict, a bar for each lane, the clock, and what can be done next. */

import { html, createButton, copyText, showAnswer, saveFile } from "#page/race/html.js";
import { headOf } from "#page/race/log.js";
import { drawPicture } from "#page/race/picture.js";
import { summarize } from "#page/race/verdict.js";

/** `root` is the player's element. `traces/traces.js` sets `root.share`, which creates a link to the run. `triggerOf`
 * returns the function that triggers a Gradio event, or null on a saved page.
 * @param {Part} box @param {PlayerTexts} texts @param {Player} root @param {() => Trigger | null} triggerOf */
export function createFinish(box, texts, root, triggerOf) {
  /* Starts a live run again. If the fields hold other settings, they are first filled in from the run. */
  function measureAgain() {
    const press = () => document.querySelector("#run").click();
    if (!root.hasAttribute("data-other")) return press();
    window.addEventListener("sd-settings", press, { once: true });
    triggerOf()?.("opened", { head: headOf(root.log()) });
  }

  return function draw(/** @type {Run} */ run) {
    const { headline, clock, busy, rows } = summarize(texts, run),
      labels = texts.finish,
      canRepeat = busy && run.header.source === "live" && triggerOf() && document.getElementById("run");
    const bars = rows.map(({ name, fill, share, label }) =>
      html(
        "div",
        { class: "sd-finrow" },
        html("span", {}, name),
        html(
          "div",
          { class: "sd-fintrack" },
          html("i", { class: "sd-fin-" + fill, style: `width:${100 * share}%` }),
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
          canRepeat ? createButton(labels.again, measureAgain) : null,
          createButton(labels.picture, savePicture, "sd-link"),
          root.share ? linkButton : null,
        ),
      ),
    );
  };
}
