/* Shows one line: what the app is doing, or what is wrong. */

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props, /** @type {Watch} */ watch) {
  const line = /** @type {HTMLElement} */ (element.querySelector("p")),
    bar = /** @type {HTMLProgressElement} */ (element.querySelector("progress"));

  function show() {
    line.textContent = props.value || "";
    line.classList.toggle("sd-wrong", props.wrong === true);
    bar.hidden = !(props.share < 1);
    bar.value = props.share;
  }

  /* The engine in this browser shows its notices without the server. */
  Object.assign(line, {
    /** @param {string} value @param {boolean} [wrong] @param {number} [share] */
    say(value, wrong = false, share = 1) {
      Object.assign(props, { value, wrong, share });
      show();
    },
  });
  show();
  watch(["value", "wrong", "share"], show);
  // The server sends no update for Stop: the last update of the stopped work could arrive later and replace it.
  watch("ended", () => {
    if (!props.stopped) return;
    line.textContent = props.stopped;
    bar.hidden = true;
  });
}
