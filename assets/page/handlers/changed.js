/* Handles changed inputs for Gradio: dispatches an event on the window with the values of all inputs, in their order.
 * A script that loads after the event reads the values in `latestValues`. */

/** @type {Map<string, any[]>} */
export const latestValues = new Map();

/** @type {(props: { event: string }) => (...values: any[]) => void} */
export const handler =
  ({ event }) =>
  (...values) => {
    latestValues.set(event, values);
    window.dispatchEvent(new CustomEvent(event, { detail: values }));
  };
