/* Where the tour's panel stands, and how far the page scrolls, so that what it points at is seen. */

export const MARGIN = 16,
  TARGET_GAP = 12,
  RING_GAP = 7,
  NARROW_PX = 720; // pixels: panel to window, panel to target, ring to target, one column

export const areApart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
const growBox = ({ left, right, top, bottom }, px) => ({
  left: left - px,
  right: right + px,
  top: top - px,
  bottom: bottom + px,
});

/* The corners of the window, the preferred first; each as the box of a panel that stands there. */
export const CORNERS = ["right bottom", "left bottom", "right top", "left top"];
export function cornerBox(corner, panel, view) {
  const left = corner.startsWith("left") ? MARGIN : view.width - MARGIN - panel.width;
  const top = corner.endsWith("top") ? MARGIN : view.height - MARGIN - panel.height;
  return { left, top, right: left + panel.width, bottom: top + panel.height };
}

/* Where the panel leaves free what it points at, and what else is to be seen; "sheet", along the bottom, if no corner
 * does. It stays where it is if it can. */
export function choosePlace(target, panel, view, lastPlace, keepFree = target) {
  if (view.width < NARROW_PX) return "sheet";
  const isFree = (corner) =>
    [target, keepFree].every((box) => areApart(cornerBox(corner, panel, view), growBox(box, TARGET_GAP)));
  return lastPlace && lastPlace !== "sheet" && isFree(lastPlace) ? lastPlace : CORNERS.find(isFree) || "sheet";
}

/* By how much to scroll until the target stands between the two lines; its beginning, if it is too tall. */
export function scrollDistance(target, top, bottom) {
  if (target.top >= top && target.bottom <= bottom) return 0;
  return target.top - top - Math.max(0, (bottom - top - (target.bottom - target.top)) / 2);
}
