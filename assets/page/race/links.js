/* Leads from the player to other parts of the page: how to read it, the tour, the tab Step through. */

import { speculativeOf } from "#page/race/run.js";
import { countCyclesBy } from "#page/race/measure.js";
import { html } from "#page/race/html.js";

/* Connects the links to the reading help and the tour. On a small screen they stand below the stage. */
export function connectWays(part, inPage, reducedMotion) {
  part.how.hidden = part.door.hidden = !inPage; // a player outside of the page has none of them
  const small = matchMedia("(max-width: 900px)"),
    placeDoors = () => (small.matches ? part.foot.after(part.doors) : part.meta.before(part.doors));
  small.onchange = placeDoors;
  placeDoors();
  part.how.onclick = () => {
    /** @type {HTMLElement | null} */
    const heading = document.querySelector(".sd-reading .label-wrap");
    if (heading && !heading.classList.contains("open")) heading.click();
    scrollTo(heading);
  };

  function scrollTo(heading) {
    if (!heading) return;
    heading.scrollIntoView({ block: "center", behavior: reducedMotion ? "auto" : "smooth" });
    heading.focus({ preventScroll: true });
  }
}

/* Makes the links from a sentence about a draft to its numbers, and to its cycle in the tab Step through. */
export function createDraftLinks({ texts, view, root, lanes, cards, markTouched }) {
  /* Opens the tab Step through at this draft; `root.wanted` waits for a tab that was never opened. */
  function takeApart(draft) {
    markTouched();
    const cycle = countCyclesBy(speculativeOf(view.run).cycles, view.timeMs);
    root.wanted = { cycle, node: speculativeOf(view.run).cycles[cycle - 1].drafts.indexOf(draft) };
    const tab = document.getElementById("step-button");
    if (tab) tab.click();
    root.dispatchEvent(new Event("sd-apart"));
  }

  return (draft) => {
    const numbersLink = html("button", { type: "button", class: "sd-link sd-inline" }, texts.say.numbers);
    numbersLink.onclick = () => {
      markTouched();
      const item = lanes.itemOf(draft);
      item && cards.showToken(item, true);
    };
    const apartLink = html("button", { type: "button", class: "sd-link sd-inline" }, texts.say.apart);
    apartLink.onclick = () => takeApart(draft);
    return html("span", {}, numbersLink, " · ", apartLink);
  };
}
