/* For the type checker only: the page does not load this file. */

/** The player of a page. `race/player.js` defines it, and the other views call its methods. */
interface Player extends HTMLElement {
  [name: string]: any;
}

interface ParentNode {
  querySelector(selectors: ".sd-player"): Player;
}

interface Window {
  gradio_config: { components: any[]; css: string };
}
