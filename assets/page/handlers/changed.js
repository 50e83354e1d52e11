// @ts-check
/* A handler for Gradio: what watches the settings hears of each change, with all their values in order. */

/** @type {() => (...values: any[]) => void} */
const handler =
  () =>
  (...values) => {
    window.dispatchEvent(new CustomEvent("sd-settings", { detail: values }));
  };

module.exports = { handler };
