/* Writes the player's labels: titles, names for screen readers, the legend, the buttons for zoom and speed. */

import { html, createId } from "#page/race/html.js";
import { createChip } from "#page/race/tokens.js";

export const AUTO = "auto"; // the page chooses the speed
const LEGEND = /** @type {State[]} */ (["pending", "accepted", "rejected", "discarded", "resampled", "bonus", "plain"]);

/** @param {PlayerTexts} texts @param {Parts} part @param {number[]} speeds */
export function labelPlayer(texts, part, speeds) {
  const labels = {
    name0: texts.lane.speculative,
    name1: texts.lane.plain,
    name2: texts.lane.peer,
    oflabel: texts.of,
    otherSettings: texts.another,
    time: texts.time.title,
    showAll: texts.all,
    how: texts.how,
    tour: texts.tour,
    barstitle: texts.charts.bars,
    barssub: texts.charts.bars_sub,
    curvetitle: texts.charts.curve,
    curvesub: texts.charts.curve_sub,
    accounttitle: texts.charts.account,
    accountsub: texts.charts.account_sub,
    download: texts.transport.download,
  };
  for (const [name, label] of Object.entries(labels)) part[name].textContent = label;
  part.otherSettings.title = texts.another;
  part.card.id = createId("card");
  part.meta.id = createId("meta");
  part.badge.setAttribute("aria-controls", part.meta.id);
  part.badge.title = texts.about;
  part.badge.onclick = () => {
    part.meta.hidden = !part.meta.hidden;
    part.badge.setAttribute("aria-expanded", String(!part.meta.hidden));
  };
  part.stage.setAttribute("aria-label", texts.transport.stage + texts.foot.keys);
  part.zoom.setAttribute("role", "group");
  part.zoom.setAttribute("aria-label", texts.time.zoom);
  part.back.setAttribute("aria-label", texts.transport.back);
  part.next.setAttribute("aria-label", texts.transport.next);
  part.scrub.setAttribute("aria-label", texts.transport.position);
  part.speed.setAttribute("aria-label", texts.transport.speed);
  part.lossy.textContent = texts.lossy;
  part.legend.prepend(
    ...LEGEND.map((state) =>
      html("span", { class: "sd-legend-entry", "data-of": state }, legendChip(texts, state), texts.status[state]),
    ),
  );
  part.legend.discardedText = part.legend.children[3].lastChild;
  part.swatches.append(
    html("i", { class: "sd-sw-draft" }),
    texts.time.draft,
    html("i", { class: "sd-sw-target" }),
    texts.time.target,
    (part.swatches.gained = html("span", {}, html("b", {}, "+n "), texts.time.gained)),
  );
  part.zoom.append(
    ...["close", "run"].map((zoom) => html("button", { type: "button", "data-zoom": zoom }, texts.time[zoom])),
  );
  part.speed.append(
    html("button", { type: "button", "data-slow": AUTO }, texts.transport.auto),
    ...speeds.map((slowdown) =>
      html("button", { type: "button", "data-slow": slowdown }, slowdown === 1 ? "1×" : "1/" + slowdown),
    ),
  );
}

function legendChip(/** @type {PlayerTexts} */ texts, /** @type {State} */ state) {
  const node = createChip(texts, texts.sample, state, "span");
  node.prepend(html("span", { class: "sd-token-text" }, texts.sample));
  node.setAttribute("aria-hidden", "true");
  node.removeAttribute("aria-label");
  return node;
}
