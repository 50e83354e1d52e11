/* Defines the tour's steps. They use the page's own widgets, and need no model. */

/* Selects for each tab the element that must be visible before a step acts in the tab. */
export const READY = {
  race: ".sd-player",
  step: ".sd-step[data-state=ready] [data-part=rail] li",
  lossless: ".sd-proof",
  methods: "#findings p",
  theory: ".sd-theory [data-part=headline]:not(:empty)",
};
export const PLAYER = ".sd-player [data-part=",
  STEP = ".sd-step [data-part=",
  THEORY = ".sd-theory [data-part=",
  BUG = ".sd-bug[data-key=from_target]";
const REJECTED = PLAYER + "lane0] .sd-rejected:not(.sd-future)",
  CARD = ".sd-player .sd-card:not([hidden])",
  VERDICT = ".sd-proof .sd-verdict";

/* A step points at the element `at`, or at its ancestor `enclosing` if that is set. `act` runs once the tab is ready.
 * `show` does the step's task for the visitor, and `done` returns whether the task is done. Then the step points at
 * `thenAt`, if set. When the step ends, `tidy` undoes the task. The tour's panel avoids `keepFree`. */
export const STEPS = [
  {
    id: "race",
    tab: "race",
    at: PLAYER + "play]",
    keepFree: ".sd-scene",
    act: (/** @type {TourPage} */ page) => {
      page.playAutomatically();
      page.seek(0);
    },
    show: (/** @type {TourPage} */ page) => page.press(PLAYER + "play]"),
    done: (/** @type {TourPage} */ page) => page.value(PLAYER + "scrub]") > 0,
  },
  {
    id: "rejection",
    tab: "race",
    at: `${REJECTED} > .sd-token-text, :not(.sd-prose) > .sd-cyc > .sd-rejected`,
    keepFree: ".sd-scene",
    act: (/** @type {TourPage} */ page) => page.seek(page.rejectionCycle().endMs),
    show: (/** @type {TourPage} */ page) => page.press(REJECTED),
    done: (/** @type {TourPage} */ page) => page.has(PLAYER + "lane0] .sd-rejected.sd-on"),
    thenAt: CARD,
  },
  { id: "speed", tab: "race", at: ".sd-player .sd-hero", act: (/** @type {TourPage} */ page) => page.seek(Infinity) },
  {
    id: "check",
    tab: "step",
    at: STEP + "grid]",
    act: (/** @type {TourPage} */ page) => page.stepThrough("draft"),
    show: (/** @type {TourPage} */ page) => page.press(STEP + "next]"),
    done: (/** @type {TourPage} */ page) => !page.has(STEP + "rail] li:first-child[aria-current]"),
  },
  {
    id: "coin",
    tab: "step",
    at: STEP + "right]",
    act: (/** @type {TourPage} */ page) => page.stepThrough(page.rejectedIndex()),
  },
  {
    id: "what_if",
    tab: "step",
    at: STEP + "coin]",
    enclosing: ".sd-ask",
    act: (/** @type {TourPage} */ page) => page.stepThrough(page.rejectedIndex()),
    show: (/** @type {TourPage} */ page) => page.slide(STEP + "coin]", 0),
    done: (/** @type {TourPage} */ page) => page.has(STEP + "hint] .sd-reset"),
    tidy: (/** @type {TourPage} */ page) => page.press(STEP + "hint] .sd-reset"),
  },
  { id: "residual", tab: "step", at: STEP + "left]", act: (/** @type {TourPage} */ page) => page.stepThrough("own") },
  { id: "certificate", tab: "lossless", at: VERDICT },
  {
    id: "break",
    tab: "lossless",
    at: BUG,
    show: (/** @type {TourPage} */ page) => page.press(BUG),
    done: (/** @type {TourPage} */ page) => page.has(BUG + "[aria-checked=true]"),
    thenAt: VERDICT,
    tidy: (/** @type {TourPage} */ page) => page.press(BUG + "[aria-checked=true]"),
  },
  { id: "methods", tab: "methods", at: "#findings" },
  {
    id: "alpha",
    tab: "theory",
    at: THEORY + "alpha]",
    enclosing: ".sd-ask",
    act: (/** @type {TourPage} */ page) => page.press(THEORY + "here]"),
    show: (/** @type {TourPage} */ page) => page.slide(THEORY + "alpha]", 0.2),
    done: (/** @type {TourPage} */ page) => page.value(THEORY + "alpha]") <= 0.3,
    tidy: (/** @type {TourPage} */ page) => page.press(THEORY + "here]"),
  },
  { id: "yours", tab: "race", at: "#run" },
];
