// @ts-check
/* What several sections begin with or consist of. */

const { h, link, words } = require("../race/player.js");

const HERE = "?tab=guide#"; // and the name of a section

const lead = (text) => h("p", { class: "sd-sub sd-gd-lead" }, text);
const list = (items) =>
  h(
    "ul",
    {},
    items.map((item) => h("li", {}, item)),
  );

/* Two columns, each as long as what is open in it. */
function halves(items) {
  const middle = Math.ceil(items.length / 2);
  return h(
    "div",
    { class: "sd-gd-two" },
    [items.slice(0, middle), items.slice(middle)].map((half) => h("div", {}, half)),
  );
}

/* What a lid hides. */
const fold = (lid, ...content) =>
  h("details", { class: "sd-fold" }, h("summary", {}, lid), content);

/* A mark that is also said. */
const marked = (mark, label) => [
  h("i", { "aria-hidden": "true" }, mark),
  h("span", { class: "sd-hidden" }, label + ": "),
];

/* The day something was looked up, and where. */
const checked = (template, { checked: date, links }) =>
  h(
    "p",
    { class: "sd-sub" },
    words(template, { date }),
    links.map((url) => [" ", link(url, url.replace(/^https:\/\/(www\.)?/, ""))]),
  );

const openTab = (name) => () => {
  document.getElementById(name + "-button")?.click();
  scrollTo({ top: 0 });
};

module.exports = { HERE, lead, list, fold, halves, marked, checked, openTab };
