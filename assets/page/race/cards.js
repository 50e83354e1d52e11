/* The card beside a token or a term, and what opens it: a pointer over it, the focus, a click, which pins it. */

import { html } from "#page/race/html.js";
import { clamp } from "#page/race/format.js";
import { createTokenCards } from "#page/race/tokencards.js";

export function createCards(W, root, part, S, touch) {
  const { draftCard, ownCard } = createTokenCards(W, S);
  /** @type {{ anchor: any, pinned: boolean } | null} */
  let card = null;

  function showCard(anchor, content, pinned) {
    hideCard();
    card = { anchor, pinned };
    anchor.setAttribute("aria-describedby", part.card.id);
    part.card.replaceChildren(...content);
    part.card.hidden = false;
    anchor.classList.add("sd-on");
    const base = root.getBoundingClientRect(),
      a = anchor.getBoundingClientRect(),
      c = part.card.getBoundingClientRect();
    const fits = a.bottom + 8 + c.height <= innerHeight,
      beside = a.right + 12 + c.width <= base.right ? a.right + 12 : a.left - 12 - c.width;
    const aside = !fits && beside >= base.left; // no room below: stand beside the token, over as little as possible
    const left = aside ? beside : a.left - 20,
      top = aside ? Math.max(8, innerHeight - 8 - c.height) : a.bottom + 8;
    const zoom = root.currentCSSZoom || 1; // on a large screen the page is zoomed, and boxes are measured after that
    part.card.style.left =
      clamp(left - base.left, 0, Math.max(0, base.width - c.width)) / zoom + "px";
    part.card.style.top = (top - base.top) / zoom + "px";
  }

  function hideCard() {
    if (!card) return;
    card.anchor.classList.remove("sd-on");
    card.anchor.removeAttribute("aria-describedby");
    card = null;
    part.card.hidden = true;
  }

  const showToken = (item, pinned) =>
    item.now !== "fut" && showCard(item.node, item.draft ? draftCard(item) : ownCard(item), pinned);
  const showTerm = (node, pinned) =>
    showCard(
      node,
      [html("b", {}, node.textContent), html("p", { class: "sd-sub" }, node.definition)],
      pinned,
    );

  const pinned = () => card && card.pinned;
  const target = (event) => event.target.closest(".sd-tok[role=button], .sd-term");
  const open = (node, pin) => (node.item ? showToken(node.item, pin) : showTerm(node, pin));
  root.addEventListener("pointerover", (event) => {
    const node = target(event);
    if (node && event.pointerType === "mouse" && !pinned()) open(node, false);
  });
  root.addEventListener("pointerout", (event) => {
    if (target(event) && !pinned()) hideCard();
  });
  root.addEventListener("focusin", (event) => {
    const node = target(event);
    if (node && node.matches(":focus-visible")) {
      touch();
      open(node, false);
    }
  });
  root.addEventListener("focusout", () => hideCard());
  root.addEventListener("click", (event) => {
    const node = target(event);
    if (node) {
      touch();
      pinned() && card?.anchor === node ? hideCard() : open(node, true);
    }
  });
  document.addEventListener("pointerdown", (event) => {
    if (
      pinned() &&
      !target(event) &&
      !(/** @type {HTMLElement} */ (event.target).closest(".sd-inline"))
    )
      hideCard();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideCard()); // wherever the focus is
  root.addEventListener("keydown", (event) => {
    if (!event.target.matches(".sd-tok[role=button]") || ![" ", "Enter"].includes(event.key))
      return;
    event.preventDefault();
    event.target.click();
  });

  return { showToken, hide: hideCard };
}
