/* Shows a card next to a token or term while the mouse is over it or it has the focus. A click pins the card. */

import { html } from "#page/race/html.js";
import { clamp } from "#page/race/format.js";
import { createTokenCards } from "#page/race/tokencards.js";

/** @param {PlayerTexts} texts @param {HTMLElement} root @param {Parts} part @param {View} view
 * @param {Act} markTouched */
export function createCards(texts, root, part, view, markTouched) {
  const { createDraftCard, createTargetCard } = createTokenCards(texts, view);
  /** @type {{ anchor: any, pinned: boolean } | null} */
  let card = null;

  function showCard(/** @type {Part} */ anchor, /** @type {Child[]} */ content, /** @type {boolean} */ pinned) {
    hideCard();
    card = { anchor, pinned };
    anchor.setAttribute("aria-describedby", part.card.id);
    part.card.replaceChildren(.../** @type {Node[]} */ (content));
    part.card.hidden = false;
    anchor.classList.add("sd-on");
    const rootBox = root.getBoundingClientRect(),
      anchorBox = anchor.getBoundingClientRect(),
      cardBox = part.card.getBoundingClientRect();
    const fitsBelow = anchorBox.bottom + 8 + cardBox.height <= innerHeight,
      besideLeft =
        anchorBox.right + 12 + cardBox.width <= rootBox.right
          ? anchorBox.right + 12
          : anchorBox.left - 12 - cardBox.width;
    const standsBeside = !fitsBelow && besideLeft >= rootBox.left;
    const left = standsBeside ? besideLeft : anchorBox.left - 20,
      top = standsBeside ? Math.max(8, innerHeight - 8 - cardBox.height) : anchorBox.bottom + 8;
    const zoom = root.currentCSSZoom || 1; // a large screen zooms the page; measured boxes include this zoom
    part.card.style.left = clamp(left - rootBox.left, 0, Math.max(0, rootBox.width - cardBox.width)) / zoom + "px";
    part.card.style.top = (top - rootBox.top) / zoom + "px";
  }

  function hideCard() {
    if (!card) return;
    card.anchor.classList.remove("sd-on");
    card.anchor.removeAttribute("aria-describedby");
    card = null;
    part.card.hidden = true;
  }

  /* Shows the card of a token. A token that the replay has not reached (state "future") has no card. */
  const showToken = (/** @type {TokenItem} */ item, /** @type {boolean} */ pinned) =>
    item.shownState !== "future" &&
    showCard(
      item.node,
      item.draft ? createDraftCard(/** @type {Required<TokenItem>} */ (item)) : createTargetCard(item),
      pinned,
    );
  const showTerm = (/** @type {Part} */ node, /** @type {boolean} */ pinned) =>
    showCard(node, [html("b", {}, node.textContent), html("p", { class: "sd-sub" }, node.definition)], pinned);

  const isPinned = () => card && card.pinned;
  const termOrToken = (/** @type {any} */ event) => event.target.closest(".sd-tok[role=button], .sd-term");
  /** @param {Part} node @param {boolean} pinned */
  const open = (node, pinned) => (node.item ? showToken(node.item, pinned) : showTerm(node, pinned));
  root.addEventListener("pointerover", (event) => {
    const node = termOrToken(event);
    if (node && event.pointerType === "mouse" && !isPinned()) open(node, false);
  });
  root.addEventListener("pointerout", (event) => {
    if (termOrToken(event) && !isPinned()) hideCard();
  });
  root.addEventListener("focusin", (event) => {
    const node = termOrToken(event);
    if (node && node.matches(":focus-visible")) {
      markTouched();
      open(node, false);
    }
  });
  root.addEventListener("focusout", () => hideCard());
  root.addEventListener("click", (event) => {
    const node = termOrToken(event);
    if (node) {
      markTouched();
      isPinned() && card?.anchor === node ? hideCard() : open(node, true);
    }
  });
  document.addEventListener("pointerdown", (event) => {
    const link = /** @type {HTMLElement} */ (event.target).closest(".sd-inline"); // its click opens the next card
    if (isPinned() && !link && !termOrToken(event)) hideCard();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideCard()); // works wherever the focus is
  root.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!target.matches(".sd-tok[role=button]") || ![" ", "Enter"].includes(event.key)) return;
    event.preventDefault();
    target.click();
  });

  return { showToken, hide: hideCard };
}
