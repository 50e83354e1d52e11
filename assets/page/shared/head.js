/* The head of a page: day and night, and the way to another language, which keeps what the address holds: the settings,
 * and the tab that is open. */

export function mount(element, props) {
  /** @type {HTMLElement} */ (element.querySelector("button")).addEventListener("click", () =>
    document.body.classList.toggle("dark"),
  );
  document.documentElement.lang = props.language;
  document.title = props.title;
  for (const link of element.querySelectorAll("a"))
    link.addEventListener("click", () => {
      const query = new URLSearchParams(location.search);
      query.set("lang", String(link.dataset.language));
      link.search = String(query);
    });
}
