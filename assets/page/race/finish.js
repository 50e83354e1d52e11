/* The end of a run: each lane as a bar of its time, a picture of both to share, and the text alone. */

import { speculative } from "#page/race/run.js";
import { h, copied, answer, saved } from "#page/race/kit.js";
import { result, tokensAt, picture } from "#page/race/picture.js";

function textOf(run) {
  const asked = (run.header.models || {}).chat ? "\n\n" : ""; // else the text goes on from the prompt
  const written = tokensAt(speculative(run), Infinity).map(({ piece }) => piece);
  return run.header.prompt + asked + written.join("");
}

/* `root`: the player, which learns from its tab how a run is shared. */
export function finish(box, W, root) {
  const copy = async (button, text, word = W.finish.copied) =>
    answer(button, (await copied(text)) ? word : W.finish.refused);

  function draw(run) {
    const { headline, title, rows, longest } = result(W, run);
    const bars = rows.map((row) =>
      h(
        "div",
        { class: "sd-finrow" },
        h("span", {}, row.name),
        h(
          "div",
          { class: "sd-fintrack" },
          h("i", { class: "sd-fin-" + row.kind, style: `width:${(100 * row.time) / longest}%` }),
          h("b", {}, row.label),
        ),
      ),
    );
    const button = (name, act) => {
      const node = h("button", { type: "button", class: "sd-link" }, W.finish[name]);
      node.onclick = () => act(node);
      return node;
    };
    const step = document.getElementById("step-button"); // a saved page has no tabs
    function judgeYourself() {
      root.wantsGame = true; // its tab may not have been opened before
      step?.click();
      root.dispatchEvent(new Event("sd-game"));
    }
    box.replaceChildren(
      h(
        "div",
        { class: "sd-finish" },
        h("h2", { title }, headline || title),
        bars,
        h(
          "p",
          { class: "sd-finacts" },
          button("picture", async () => saved(await picture(W, run), run, ".png")),
          root.share
            ? button("link", async (node) => {
                const { link, whole } = await root.share();
                copy(node, link, whole ? W.finish.copied : W.finish.copied_settings);
              })
            : null,
          step ? button("game", judgeYourself) : null,
          button("text", (node) => copy(node, textOf(run))),
        ),
      ),
    );
  }

  return { draw };
}
