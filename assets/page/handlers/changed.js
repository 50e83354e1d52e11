// @ts-check
/* A handler for Gradio: what listens for this event of the window hears of each change, with all values in order. */

/** @type {(props: { event: string }) => (...values: any[]) => void} */
const handler =
  ({ event }) =>
  (...values) => {
    window.dispatchEvent(new CustomEvent(event, { detail: values }));
  };

export { handler };
