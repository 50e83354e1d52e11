/* Defines the steps of the tour. They use the page's own buttons and sliders, and need no model. */

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
const CARD = ".sd-player .sd-card:not([hidden])",
  VERDICT = ".sd-proof .sd-verdict";

/* A step points at the element `at`, or at its ancestor `enclosing` if that is set. `act` runs once the tab is ready.
 * `show` does the step's task for the visitor, and `done` returns whether the task is done. Then the step points at
 * `thenAt`, if set. When the step ends, `tidy` undoes the task. The tour's panel avoids `keepFree`. */
export const STEPS = [
  {
    id: "race",
    tab: "race",
    at: PLAYER + "play]",
    keepFree: PLAYER + "figures]",
    act: (page) => page.seek(0),
    show: (page) => page.press(PLAYER + "play]"),
    done: (page) => page.value(PLAYER + "scrub]") > 0,
  },
  {
    id: "rejection",
    tab: "race",
    at: PLAYER + "lane0] .sd-rejected:not(.sd-future)",
    act: (page) => page.seek(page.rejectionCycle().endMs),
    show: (page) => page.press(PLAYER + "lane0] .sd-rejected:not(.sd-future)"),
    done: (page) => page.has(PLAYER + "lane0] .sd-rejected.sd-on"),
    thenAt: CARD,
  },
  { id: "speed", tab: "race", at: ".sd-player .sd-hero", act: (page) => page.seek(Infinity) },
  {
    id: "check",
    tab: "step",
    at: STEP + "grid]",
    act: (page) => page.stepThrough("draft"),
    show: (page) => page.press(STEP + "next]"),
    done: (page) => !page.has(STEP + "rail] li:first-child[aria-current]"),
  },
  { id: "coin", tab: "step", at: STEP + "right]", act: (page) => page.stepThrough(page.rejectedIndex()) },
  {
    id: "what_if",
    tab: "step",
    at: STEP + "coin]",
    enclosing: ".sd-ask",
    act: (page) => page.stepThrough(page.rejectedIndex()),
    show: (page) => page.slide(STEP + "coin]", 0),
    done: (page) => page.has(STEP + "hint] .sd-reset"),
    tidy: (page) => page.press(STEP + "hint] .sd-reset"),
  },
  { id: "residual", tab: "step", at: STEP + "left]", act: (page) => page.stepThrough("own") },
  { id: "certificate", tab: "lossless", at: VERDICT },
  {
    id: "break",
    tab: "lossless",
    at: BUG,
    show: (page) => page.press(BUG),
    done: (page) => page.has(BUG + "[aria-checked=true]"),
    thenAt: VERDICT,
    tidy: (page) => page.press(BUG + "[aria-checked=true]"),
  },
  { id: "methods", tab: "methods", at: "#findings" },
  {
    id: "alpha",
    tab: "theory",
    at: THEORY + "alpha]",
    enclosing: ".sd-ask",
    act: (page) => page.press(THEORY + "here]"),
    show: (page) => page.slide(THEORY + "alpha]", 0.2),
    done: (page) => page.value(THEORY + "alpha]") <= 0.3,
    tidy: (page) => page.press(THEORY + "here]"),
  },
  { id: "yours", tab: "race", at: "#run" },
];
