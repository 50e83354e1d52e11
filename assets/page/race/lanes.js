// @ts-check
/* The lanes of text: chips are built as their cycles arrive, and time only changes their classes. */

const { EPS, tipOf, beginning, speculative, doneBy, shownLanes, depthOf } = require("./run.js");
const { visible, wrote, words, dress, h, atBreak, chip, statusOf, prompted } = require("./kit.js");

const NEAR = 60; // px: two lines from its end a lane still follows

/* S: the run on show and the moment S.t. */
function lanes(W, part, S) {
  let chips = [],
    trees = [],
    built = [];

  const clip = (prompt) =>
    visible(prompt.length > 260 ? "… " + prompt.slice(-240) : prompt).replace(/↵/g, "↵\n");
  const laneBoxes = () => [part.lane0, part.lane1, part.lane2];
  const isDrafting = (l) => l !== 1; // all lanes but the plain one

  function clear() {
    chips = [];
    trees = [];
    built = S.run.names.map(() => -1);
    laneBoxes().forEach((box) => {
      box.replaceChildren(prompted(S.run.header, clip));
      letGo(box);
    });
  }

  function build() {
    shownLanes(S.run).forEach((lane, l) => {
      if (built[l] < 0 && lane.first) {
        if (lane.first.cycle) buildCycle(l, lane.first.cycle);
        else
          lane.first.pieces.forEach((piece) =>
            put(l, laneBoxes()[l], piece, "pla", 0, 0, { own: lane.first, place: "first" }),
          );
        laneBoxes()[l].append(h("span", { class: "sd-gap" }));
        built[l] = 0;
      }
      for (; built[l] >= 0 && built[l] < lane.cycles.length; built[l]++)
        buildCycle(l, lane.cycles[built[l]]);
    });
  }

  function buildCycle(l, cycle) {
    const box = laneBoxes()[l];
    const group = h("span", { class: "sd-cyc" }),
      judged = cycle.check ? cycle.check.end : cycle.at;
    const place = cycle.tree ? plant(group, cycle) : () => group;
    cycle.drafts.forEach((draft, i) =>
      put(l, place(i, draft.parent), draft.piece, draft.state, draft.ready, judged, {
        cycle,
        draft,
        i,
      }),
    );
    if (cycle.own)
      put(
        l,
        place(cycle.drafts.length, tipOf(cycle)),
        cycle.own.piece,
        cycle.own.state,
        cycle.at,
        cycle.at,
        { cycle, own: cycle.own },
      );
    box.append(group);
    if (isDrafting(l)) box.append(h("span", { class: "sd-gap" }), " ");
  }

  /* A draft with siblings: they hang below each other, and what follows a token stands right of it. Says where a
   * token goes. */
  function plant(tree, cycle) {
    const nodes = { "-1": tree };
    dress(
      tree,
      {
        class: "sd-cyc sd-tree",
        role: "group",
        "aria-label": words(W.tree.aria, { n: cycle.drafts.length, levels: depthOf(cycle) }),
      },
      [],
    );
    trees.push({ tree, cycle });
    return (i, parent) => {
      const up = nodes[parent];
      if (!up.kids) up.append((up.kids = h("span", { class: "sd-kids" })));
      up.kids.append((nodes[i] = h("span", { class: "sd-node" })));
      return nodes[i];
    };
  }

  /* Only what joins the text may break a line. */
  function put(l, parent, piece, ...more) {
    const [state] = more,
      inText = !["rej", "dis", "cut"].includes(state);
    (inText ? atBreak(piece) : [piece]).forEach((end, i) => {
      const node = putOne(l, parent, end, ...more);
      if (i) node.querySelectorAll(".sd-m").forEach((mark) => mark.remove()); // one mark a token
      if (inText && /\n/.test(end)) parent.append(h("br"));
    });
  }

  function putOne(l, parent, piece, state, from, judged, about) {
    const node = chip(W, piece, state, "button", statusOf(W, state, about) + levelOf(about));
    node.classList.add("sd-fut");
    node.classList.toggle("sd-seam", Boolean(about.draft && wrote(about.draft)));
    const item = { node, state, from, judged, now: "fut", lane: l, piece, ...about };
    node.item = item;
    chips.push(item);
    parent.append(node);
    return node;
  }

  const levelOf = ({ cycle, draft }) =>
    draft && cycle.tree ? ", " + words(W.tree.level, { level: draft.level }) : "";

  function paintChips() {
    const latest = doneBy(speculative(S.run).cycles, S.t);
    for (const item of chips) {
      const now = S.t + EPS < item.from ? "fut" : S.t + EPS < item.judged ? "pen" : item.state;
      const reach =
        now !== "fut" && item.lane === 0 && item.cycle && item.cycle.number === latest ? 0 : -1;
      if (item.reach !== reach) item.node.tabIndex = item.reach = reach;
      if (item.now === now) continue;
      item.now = now;
      item.node.className = "sd-tok " + (now === "fut" ? "sd-fut sd-" + item.state : "sd-" + now);
      item.node.classList.toggle("sd-unmarked", now === "pen");
      item.node.classList.toggle("sd-kept", ["acc", "res", "bon"].includes(now));
    }
  }

  /* A tree stands until the next cycle begins; of past ones only what joined the text is left. */
  function paintTrees() {
    const cycles = speculative(S.run).cycles;
    for (const { tree, cycle } of trees) {
      const next = cycles[cycle.number];
      tree.classList.toggle("sd-fut", S.t + EPS < beginning(cycle));
      tree.classList.toggle("sd-past", Boolean(next) && S.t + EPS >= beginning(next));
    }
  }

  /* Lanes grow, never shrink: the scrubber stays under the finger. Heights are told after a layout, so none is
   * forced. */
  const tall = new ResizeObserver((entries) => {
    const nodes = entries.map((entry) => /** @type {any} */ (entry.target)),
      heights = nodes.map((node) => node.offsetHeight);
    nodes.forEach((target, i) => {
      if (heights[i] <= target.tall) return;
      target.tall = heights[i];
      target.style.minHeight = target.tall + "px";
    });
  });

  function letGo(box) {
    box.style.minHeight = "";
    box.tall = box.full = 0;
    tall.unobserve(box); // observed anew, its height is told again
    tall.observe(box);
  }

  /* A full lane follows its newest words, unless the visitor has scrolled up. Asked after a frame, when it is laid
   * out. */
  function follow() {
    for (const box of laneBoxes()) {
      const { clientHeight: height, scrollHeight: full, scrollTop: top } = box;
      if (full > height && top + height > Math.min(box.full, full) - NEAR) box.scrollTop = full;
      box.full = full;
    }
  }

  const find = (draft) => chips.find((one) => one.draft === draft);

  function paint() {
    paintChips();
    paintTrees();
  }

  return { clear, build, paint, follow, letGo: () => laneBoxes().forEach(letGo), find };
}

module.exports = { lanes };
