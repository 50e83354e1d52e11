// @ts-check
/* What several sections begin with or consist of. */

const { h } = require("../race/player.js");

const lead = (text) => h("p", { class: "sd-sub sd-gd-lead" }, text);
const list = (items, cls) =>
  h(
    "ul",
    { class: cls || null },
    items.map((item) => h("li", {}, item)),
  );

module.exports = { lead, list };
