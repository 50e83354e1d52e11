// @ts-check
/* Ways from the player to other parts of the page: one's own prompt, how the page is read, the tour. */

function ways(part, inPage, calm) {
  part.own.hidden = part.how.hidden = part.door.hidden = !inPage; // a page of its own has none of them
  part.own.onclick = () => lead(document.querySelector("#prompt textarea"));
  part.how.onclick = () => {
    const heading = document.querySelector(".sd-reading .label-wrap");
    if (heading && !heading.classList.contains("open")) heading.click();
    lead(heading);
  };

  function lead(to) {
    if (!to) return;
    to.scrollIntoView({ block: "center", behavior: calm ? "auto" : "smooth" });
    to.focus({ preventScroll: true });
  }
}

module.exports = { ways };
