/* What stands on the player whatever it plays: titles, names for screen readers, the legend, the buttons of zoom
 * and speed. */

import { html, createId } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";

export const AUTO = "auto"; // the speed that the page chooses from moment to moment

export const formatSpeed = (slow) => (slow === 1 ? "1×" : "1/" + slow);

export function labelPlayer(W, part, speeds) {
  const named = {
    name0: W.lane.speculative,
    name1: W.lane.plain,
    name2: W.lane.peer,
    oflabel: W.of,
    another: W.another,
    time: W.time.title,
    all: W.all,
    how: W.how,
    door: W.door,
    barstitle: W.charts.bars,
    barssub: W.charts.bars_sub,
    curvetitle: W.charts.curve,
    curvesub: W.charts.curve_sub,
    accounttitle: W.charts.account,
    accountsub: W.charts.account_sub,
    download: W.transport.download,
  };
  for (const [name, words] of Object.entries(named)) part[name].textContent = words;
  part.another.title = W.another;
  part.card.id = createId("card");
  part.meta.id = createId("meta");
  part.badge.setAttribute("aria-controls", part.meta.id);
  part.badge.title = W.about;
  part.badge.onclick = () => {
    part.meta.hidden = !part.meta.hidden;
    part.badge.setAttribute("aria-expanded", String(!part.meta.hidden));
  };
  part.stage.setAttribute("aria-label", W.transport.stage);
  part.zoom.setAttribute("role", "group");
  part.zoom.setAttribute("aria-label", W.time.zoom);
  part.back.setAttribute("aria-label", W.transport.back);
  part.next.setAttribute("aria-label", W.transport.next);
  part.scrub.setAttribute("aria-label", W.transport.position);
  part.speed.setAttribute("aria-label", W.transport.speed);
  part.lossy.textContent = W.lossy;
  part.legend.prepend(
    ...["acc", "rej", "dis", "res", "bon", "pen"].map((state) =>
      html("span", { class: "sd-it" }, legendChip(W, state), W.status[state]),
    ),
  );
  part.legend.late = part.legend.children[2].lastChild;
  part.swatches.append(
    html("i", { class: "sd-sw-draft" }),
    W.time.draft + " ",
    html("i", { class: "sd-sw-target" }),
    W.time.target,
  );
  part.zoom.append(
    ...["close", "run"].map((zoom) =>
      html("button", { type: "button", "data-zoom": zoom }, W.time[zoom]),
    ),
  );
  part.speed.append(
    html("button", { type: "button", class: "sd-auto", "data-slow": AUTO }),
    ...speeds.map((slow) =>
      html("button", { type: "button", "data-slow": slow }, formatSpeed(slow)),
    ),
  );
}

function legendChip(W, state) {
  const node = createChip(W, W.sample, state, "span");
  node.prepend(html("span", { class: "sd-w" }, W.sample));
  node.setAttribute("aria-hidden", "true");
  node.removeAttribute("aria-label");
  return node;
}
