/* Adds what Gradio's page lacks for the keyboard: a link to the button Run, arrow keys on the tabs, Enter to run. */

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
  const skip = /** @type {any} */ (element.querySelector("a"));
  skip.textContent = props.words;
  skip.addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    /** @type {HTMLElement} */ (document.getElementById("race-button")).click();
    requestAnimationFrame(() => /** @type {HTMLElement} */ (document.getElementById("run")).focus());
  });

  /* Enter starts a run, unless one is on; Shift+Enter begins a new line. */
  document.addEventListener("keydown", (event) => {
    const { target, key, shiftKey, isComposing } = event;
    if (key !== "Enter" || shiftKey || isComposing) return;
    if (!(/** @type {Element} */ (target).matches("#prompt textarea"))) return;
    event.preventDefault();
    document.querySelector("#run:not([data-stops])")?.click(); // does nothing while the button is disabled
  });

  /* A long prompt shows its beginning, and no part of a line, once it is written. */
  document.addEventListener("focusout", ({ target }) => {
    if (/** @type {Element} */ (target).matches("#prompt textarea")) /** @type {Element} */ (target).scrollTop = 0;
  });

  /** The tabs follow the ARIA guide: Tab stops at them once; arrow keys, Home and End move between them.
   * @type {Record<string, (index: number, count: number) => number>} */
  const NEXT_TAB = {
    ArrowRight: (index, count) => (index + 1) % count,
    ArrowLeft: (index, count) => (index + count - 1) % count,
    Home: () => 0,
    End: (index, count) => count - 1,
  };
  /** @returns {any[]} */
  const visibleTabs = () =>
    [...document.querySelectorAll(".sd-tabs [role=tab]")].filter((tab) => tab.id && tab.getClientRects().length);
  function keepOneStop(/** @type {Event} */ { target }) {
    const tabs = visibleTabs(),
      stop = tabs.includes(target) ? target : tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
    for (const tab of tabs) tab.tabIndex = tab === stop ? 0 : -1;
  }

  document.addEventListener("keydown", (event) => {
    const tabs = visibleTabs(),
      index = tabs.indexOf(document.activeElement);
    if (index < 0 || !(event.key in NEXT_TAB) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = tabs[NEXT_TAB[event.key](index, tabs.length)];
    next.click();
    next.focus();
  });
  /* Takes open menus out of the Tab order. Otherwise Tab focuses a long menu, which closes, and the focus is lost. */
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Tab") return;
    for (const list of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("ul[role=listbox]")))
      list.tabIndex = -1;
  });
  document.addEventListener("focusin", keepOneStop);
}
