/* Chooses where the tour's panel stands and how far the page scrolls, so that the target of a step is visible. */

export const MARGIN = 16, // px between panel and window
  TARGET_GAP = 12, // px at least between panel and target
  RING_GAP = 7, // px between ring and target
  NARROW_PX = 720; // a narrower window gets one column

export const areApart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
const growBox = ({ left, right, top, bottom }, px) => ({
  left: left - px,
  right: right + px,
  top: top - px,
  bottom: bottom + px,
});

/* Lists the corners of the window, the preferred one first; `cornerBox` is the box of a panel in a corner. */
export const CORNERS = ["right bottom", "left bottom", "right top", "left top"];
export function cornerBox(corner, panel, view) {
  const left = corner.startsWith("left") ? MARGIN : view.width - MARGIN - panel.width;
  const top = corner.endsWith("top") ? MARGIN : view.height - MARGIN - panel.height;
  return { left, top, right: left + panel.width, bottom: top + panel.height };
}

/* Chooses a corner in which the panel covers neither `target` nor `keepFree`, preferably `lastPlace`. If there is none,
 * or the window is narrow, it chooses "sheet", which is along the bottom. */
export function choosePlace(target, panel, view, lastPlace, keepFree = target) {
  if (view.width < NARROW_PX) return "sheet";
  const isFree = (corner) =>
    [target, keepFree].every((box) => areApart(cornerBox(corner, panel, view), growBox(box, TARGET_GAP)));
  return lastPlace && lastPlace !== "sheet" && isFree(lastPlace) ? lastPlace : CORNERS.find(isFree) || "sheet";
}

/* Returns how far to scroll until the target, or the beginning of a tall one, stands between `top` and `bottom`. */
export function scrollDistance(target, top, bottom) {
  if (target.top >= top && target.bottom <= bottom) return 0;
  return target.top - top - Math.max(0, (bottom - top - (target.bottom - target.top)) / 2);
}
