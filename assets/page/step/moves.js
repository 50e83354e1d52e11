/* Token flow: what a sub-step adds moves to its place in the grid. Drafts come one by one from the left, the pass fills
 * its bar, a verdict drops out of it. Without motion the grid simply stands there. */

/* Moves only when the moment is another: a window that changes its size draws the same one again. */
export function moveIn(grid, step, moment) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
    same = grid.moment === moment;
  grid.moment = moment;
  if (calm || same) return;
  const all = (selector) => [...grid.querySelectorAll(selector)];
  const flow = (node, from, delay = 0, duration = 420) =>
    node.animate([from, {}], {
      duration,
      delay,
      fill: "backwards",
      easing: "cubic-bezier(.3, 0, .2, 1)",
    });
  const added =
    { own: ".sd-cell:last-child .sd-tok", late: ".sd-bottom .sd-dis" }[step] ||
    ".sd-bottom.sd-hot .sd-tok";
  if (step === "draft")
    all(".sd-top > *").forEach((node, i) =>
      flow(node, { transform: `translateX(${-node.offsetLeft}px)`, opacity: 0 }, 160 * (i >> 1)),
    );
  else if (step === "check") flow(all(".sd-pass")[0], { clipPath: "inset(0 100% 0 0)" }, 0, 700);
  else if (step !== "commit")
    all(added).forEach((node) =>
      flow(node, { transform: "translateY(-52px) rotate(4deg)", opacity: 0 }),
    );
}
