/* A handler for Gradio: what listens for this event of the window hears of each change, with all values in order. A
 * script that comes later asks for the latest ones. */

/** @type {Map<string, any[]>} */
export const latestValues = new Map();

/** @type {(props: { event: string }) => (...values: any[]) => void} */
export const handler =
  ({ event }) =>
  (...values) => {
    latestValues.set(event, values);
    window.dispatchEvent(new CustomEvent(event, { detail: values }));
  };
