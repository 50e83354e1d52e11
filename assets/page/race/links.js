/* Ways from the player to other parts of the page. */

import { speculativeOf } from "#page/race/run.js";
import { countCyclesBy } from "#page/race/measure.js";
import { html } from "#page/race/html.js";

/* How the page is read, the tour. On a small screen they stand below the stage. */
export function connectWays(part, inPage, calm) {
  part.how.hidden = part.door.hidden = !inPage; // a page of its own has none of them
  const small = matchMedia("(max-width: 900px)"),
    place = () => (small.matches ? part.foot.after(part.doors) : part.meta.before(part.doors));
  small.onchange = place;
  place();
  part.how.onclick = () => {
    /** @type {HTMLElement | null} */
    const heading = document.querySelector(".sd-reading .label-wrap");
    if (heading && !heading.classList.contains("open")) heading.click();
    lead(heading);
  };

  function lead(to) {
    if (!to) return;
    to.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    to.focus({ preventScroll: true });
  }
}

/* From a sentence about a draft to its numbers, and to its cycle in the tab that takes cycles apart. */
export function createDraftLinks({ W, S, root, text, card, touch }) {
  /* Hands the decision to the page that takes cycles apart; it may not have been opened before. */
  function takeApart(draft) {
    touch();
    const cycle = countCyclesBy(speculativeOf(S.run).cycles, S.t);
    root.wanted = { cycle, node: speculativeOf(S.run).cycles[cycle - 1].drafts.indexOf(draft) };
    const tab = document.getElementById("step-button");
    if (tab) tab.click();
    root.dispatchEvent(new Event("sd-apart"));
  }

  return (draft) => {
    const more = html("button", { type: "button", class: "sd-link sd-inline" }, W.say.numbers);
    more.onclick = () => {
      touch();
      const item = text.find(draft);
      item && card.showToken(item, true);
    };
    const apart = html("button", { type: "button", class: "sd-link sd-inline" }, W.say.apart);
    apart.onclick = () => takeApart(draft);
    return html("span", {}, more, " · ", apart);
  };
}
