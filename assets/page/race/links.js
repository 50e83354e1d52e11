/* Connects the player's links to other parts of the page: the reading help, the tour, the tab Step through. */

import { speculativeOf } from "#page/race/run.js";
import { countCyclesBy } from "#page/race/measure.js";
import { html } from "#page/race/html.js";

/** Places the player's links. One opens the reading help; the tour's belongs to `guide/tour.js`. @param {Parts} part
 * @param {boolean} inPage @param {boolean} reducedMotion */
export function connectHelpLinks(part, inPage, reducedMotion) {
  part.how.hidden = part.tour.hidden = !inPage; // a saved page has neither
  const small = matchMedia("(max-width: 900px)"),
    placeLinks = () => (small.matches ? part.foot.after(part.links) : part.meta.before(part.links));
  small.onchange = placeLinks;
  placeLinks();
  part.how.onclick = () => {
    /** @type {HTMLElement | null} */
    const heading = document.querySelector(".sd-reading .label-wrap");
    if (heading && !heading.classList.contains("open")) heading.click();
    scrollTo(heading);
  };

  function scrollTo(/** @type {HTMLElement | null} */ heading) {
    if (!heading) return;
    heading.scrollIntoView({ block: "center", behavior: reducedMotion ? "auto" : "smooth" });
    heading.focus({ preventScroll: true });
  }
}

export function createDraftLinks(/** @type {any} */ { texts, view, root, lanes, cards, markTouched }) {
  /* Opens the tab Step through at this draft; the tab reads `root.wantedStep`. */
  function openStepThrough(/** @type {Draft} */ draft) {
    markTouched();
    const cycle = countCyclesBy(speculativeOf(view.run).cycles, view.timeMs);
    root.wantedStep = { cycle, node: speculativeOf(view.run).cycles[cycle - 1].drafts.indexOf(draft) };
    const tab = document.getElementById("step-button");
    if (tab) tab.click();
    root.dispatchEvent(new Event("sd-step-through"));
  }

  return (/** @type {Draft} */ draft) => {
    const numbersLink = html("button", { type: "button", class: "sd-link sd-inline" }, texts.say.numbers);
    numbersLink.onclick = () => {
      markTouched();
      const item = lanes.itemOf(draft);
      item && cards.showToken(item, true);
    };
    const stepThroughLink = html("button", { type: "button", class: "sd-link sd-inline" }, texts.say.apart);
    stepThroughLink.onclick = () => openStepThrough(draft);
    return html("span", {}, numbersLink, " · ", stepThroughLink);
  };
}
