/* The end of a run: each lane as a bar of its time, a picture of both and a link to share. */

import { h, copied, answer, saved } from "#page/race/kit.js";
import { result, picture } from "#page/race/picture.js";

/* `root`: the player, which learns from its tab how a run is shared. */
export function finish(box, W, root) {
  return function draw(run) {
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
                const word = whole ? W.finish.copied : W.finish.copied_settings;
                answer(node, (await copied(link)) ? word : W.finish.refused);
              })
            : null,
        ),
      ),
    );
  };
}
