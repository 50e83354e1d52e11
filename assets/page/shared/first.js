/* Draws the first screen while Gradio still loads: the head, the tabs as links, and the player, which already plays.
 * Once Gradio has mounted, `race/player.js` moves the player into Gradio's page and removes the first screen.
 *
 * The content comes from Gradio's configuration of the page, so that nothing is sent twice. */

(() => {
  const screen = /** @type {any} */ (document.getElementById("first")),
    parameters = new URLSearchParams(location.search),
    // Gradio does not document `gradio_config`. If it is missing, there is no first screen.
    { components, css } = window.gradio_config || {};
  const readStored = (/** @type {string} */ name) => {
    try {
      return sessionStorage.getItem(name);
    } catch {
      return null;
    }
  };
  const isOtherTab = (parameters.get("tab") || "race") !== "race";
  if (!components || isOtherTab || readStored("specdec.run") || location.hash.startsWith("#run="))
    return screen.remove(); // the page asks for a password, or opens with another tab or run
  try {
    draw();
  } catch (error) {
    // Gradio draws the page a second later
    screen.remove();
    console.error(error);
  }

  function draw() {
    const theme = parameters.get("__theme"),
      prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.body.classList.toggle("dark", theme === "dark" || (theme !== "light" && prefersDark));
    screen.querySelector("style").append(css);
    for (const place of screen.querySelectorAll("[data-draws]")) {
      const { props } = components.find((component) => component.props.elem_id === place.dataset.draws);
      place.innerHTML = props.html_template;
      new Function("element", "props", "watch", "trigger", "server", props.js_on_load)(
        place,
        { ...props.props, value: props.value },
        () => {},
        () => {},
      );
    }
    screen.querySelector(".sd-early").textContent = components.find(
      (component) => component.props.elem_id === "prompt",
    ).props.value;
    for (const { type, props } of components) {
      if (type !== "tabitem") continue;
      const tab = document.createElement("a"),
        query = new URLSearchParams(parameters);
      query.set("tab", props.elem_id);
      Object.assign(tab, { textContent: props.label, href: location.pathname + "?" + query });
      screen.querySelector("nav.sd-first-tabs").append(tab);
    }
    screen.hidden = false;
  }
})();
