/* Runs the head of a page: the switch between light and dark, and the links to other languages. */

export function mount(/** @type {HTMLElement} */ element, /** @type {Props} */ props) {
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
