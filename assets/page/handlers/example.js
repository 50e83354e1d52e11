// @ts-check
/* A handler for Gradio: a press writes this text. */

/** @type {(props: { text: string }) => () => string} */
const handler =
  ({ text }) =>
  () =>
    text;

module.exports = { handler };
