/* Places the tour's panel and scrolls the page so that a step's widget is visible. */

export const MARGIN = 16, // px between panel and window
  WIDGET_GAP = 12, // px at least between panel and widget
  RING_GAP = 7, // px between the widget and the ring around it
  NARROW_PX = 720; // in a narrower window, the page has one column

/** @param {Box} a @param {Box} b */
export const areApart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
const growBox = (/** @type {Box} */ { left, right, top, bottom }, /** @type {number} */ px) => ({
  left: left - px,
  right: right + px,
  top: top - px,
  bottom: bottom + px,
});

export const CORNERS = ["right bottom", "left bottom", "right top", "left top"];
/** @param {string} corner @param {{ width: number, height: number }} panel
 * @param {{ width: number, height: number }} viewport */
export function cornerBox(corner, panel, viewport) {
  const left = corner.startsWith("left") ? MARGIN : viewport.width - MARGIN - panel.width;
  const top = corner.endsWith("top") ? MARGIN : viewport.height - MARGIN - panel.height;
  return { left, top, right: left + panel.width, bottom: top + panel.height };
}

/** Chooses a corner where the panel covers neither `widget` nor, if possible, `keepFree`; prefers `lastPlace`. If none
 * fits, or the window is narrow, chooses "sheet", which lies along the bottom of the window. @param {Box} widget
 * @param {{ width: number, height: number }} panel @param {{ width: number, height: number }} viewport
 * @param {string} lastPlace @param {Box} [keepFree] */
export function choosePlace(widget, panel, viewport, lastPlace, keepFree = widget) {
  if (viewport.width < NARROW_PX) return "sheet";
  const isApart = (/** @type {Box} */ box) => (/** @type {string} */ corner) =>
    areApart(cornerBox(corner, panel, viewport), growBox(box, WIDGET_GAP));
  const free = CORNERS.filter(isApart(widget)),
    best = free.filter(isApart(keepFree));
  return best.includes(lastPlace) ? lastPlace : (best[0] ?? free[0] ?? "sheet");
}

/** Returns how far to scroll until `widget` is above `bottom`: 0 if it is, else to the top of its `frame` if that is
 * enough, else until it is centred. @param {Box} widget @param {number} bottom @param {Box} [frame] */
export function scrollDistance(widget, bottom, frame) {
  const room = bottom - 2 * MARGIN - (widget.bottom - widget.top);
  const isEnough = (/** @type {number} */ distance) =>
    widget.top - distance >= MARGIN && widget.bottom - distance <= bottom;
  return [0, frame ? frame.top - MARGIN : 0].find(isEnough) ?? widget.top - MARGIN - Math.max(0, room / 2);
}
