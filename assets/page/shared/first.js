/* The first screen, drawn from the page's own HTML while Gradio is still on its way: the head, the tabs as links, and
 * the player, which plays. Once Gradio has mounted, the player moves into its place there, and the rest of this goes.
 *
 * What is drawn is read from Gradio's configuration of the page; nothing is sent twice. */

(() => {
  const screen = /** @type {any} */ (document.getElementById("first")),
    parameters = new URLSearchParams(location.search),
    // what Gradio does not document: without, it draws all of it itself
    { components, css } = window.gradio_config || {};
  const readStored = (name) => {
    try {
      return sessionStorage.getItem(name);
    } catch {
      return null;
    }
  };
  const isOtherTab = (parameters.get("tab") || "race") !== "race";
  if (!components || isOtherTab || readStored("specdec.run") || location.hash.startsWith("#run="))
    return screen.remove(); // it asks for a password, or will show another run
  try {
    draw();
  } catch (error) {
    // Gradio draws all of it a second later
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
