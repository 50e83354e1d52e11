/* The lanes of text: tokens are built as their cycles arrive, and time only changes their classes. A lane reads as
 * prose: pieces of a word join, and what was thrown away is a thin tick once it has been seen. With S.all every token
 * is a chip with its marks instead, and trees are trees. */

import { EPS, speculativeOf, plainOf, peerOf, lanesOf, isOver, isAtEnd } from "#page/race/run.js";
import { findTip, firstTokenMs, depthOf } from "#page/race/cycle.js";
import { countCyclesBy } from "#page/race/measure.js";
import { makeVisible, fillText } from "#page/race/text.js";
import { setUp, html } from "#page/race/html.js";
import { splitAtBreak, createChip, statusOf, createPrompt } from "#page/race/tokens.js";

const NEAR = 60; // px: two lines from its end a lane still follows
const PROMPT = 64; // characters of a prompt's last line
const SEEN = 250; // ms that a cycle must last on the screen for its drafts to be seen

/* S: the run on show and the moment S.t. */
export function createLanes(W, part, S) {
  let chips = [],
    groups = [],
    built = [];

  const laneBoxes = () => [part.lane0, part.lane1, part.lane2];
  const isDrafting = (l) => l !== 1; // all lanes but the plain one

  /* A prompt is read above; here its last words lead into the text. */
  function clip(prompt) {
    const last = prompt.split("\n").pop();
    return makeVisible(last.length > PROMPT ? "… " + last.slice(4 - PROMPT).trimStart() : last);
  }

  function clear() {
    chips = [];
    groups = [];
    built = S.run.names.map(() => -1);
    laneBoxes().forEach((box) => {
      box.replaceChildren(createPrompt(S.run.header, clip));
      box.full = 0;
    });
    [part.peer.hidden, part.other.hidden] = [!peerOf(S.run), !plainOf(S.run)];
    part.rows.replaceChildren(
      ...[W.lane.speculative, peerOf(S.run) && W.lane.peer, plainOf(S.run) && W.lane.plain]
        .filter(Boolean)
        .map((name) => html("span", {}, name)),
    );
    part.stage.toggleAttribute("data-code", S.run.header.kind === "code");
  }

  function build() {
    lanesOf(S.run).forEach((lane, l) => {
      if (built[l] < 0 && lane.first) {
        if (lane.first.cycle) buildCycle(l, lane.first.cycle);
        else
          lane.first.pieces.forEach((piece, i) =>
            put(l, laneBoxes()[l], { piece, text: lane.first.texts[i] }, "pla", 0, 0, {
              own: lane.first,
              place: "first",
            }),
          );
        laneBoxes()[l].append(html("span", { class: "sd-gap" }));
        built[l] = 0;
      }
      for (; built[l] >= 0 && built[l] < lane.cycles.length; built[l]++)
        buildCycle(l, lane.cycles[built[l]], lane.cycles);
    });
  }

  function buildCycle(l, cycle, all = []) {
    const box = laneBoxes()[l];
    const group = html("span", { class: "sd-cyc" }),
      judged = cycle.check ? cycle.check.end : cycle.at;
    const place = cycle.tree ? plant(group, cycle) : () => group;
    if (isDrafting(l)) groups.push({ group, cycle, all, tree: cycle.tree });
    cycle.drafts.forEach((draft, i) =>
      put(l, place(i, draft.parent), draft, draft.state, draft.ready, judged, {
        cycle,
        draft,
        i,
      }),
    );
    if (cycle.own)
      put(
        l,
        place(cycle.drafts.length, findTip(cycle)),
        cycle.own,
        cycle.own.state,
        cycle.at,
        cycle.at,
        { cycle, own: cycle.own },
      );
    box.append(group);
    if (isDrafting(l)) box.append(html("span", { class: "sd-gap" }));
  }

  /* A draft with siblings: they hang below each other, and what follows a token stands right of it. Says where a
   * token goes. */
  function plant(tree, cycle) {
    const nodes = { "-1": tree };
    setUp(
      tree,
      {
        class: "sd-cyc sd-tree",
        role: "group",
        "aria-label": fillText(W.tree.aria, { n: cycle.drafts.length, levels: depthOf(cycle) }),
      },
      [],
    );
    return (i, parent) => {
      const up = nodes[parent];
      if (!up.kids) up.append((up.kids = html("span", { class: "sd-kids" })));
      up.kids.append((nodes[i] = html("span", { class: "sd-node" })));
      return nodes[i];
    };
  }

  /* Only what joins the text may break a line. */
  function put(l, parent, { piece, text }, ...more) {
    const [state] = more,
      inText = !["rej", "dis", "cut"].includes(state),
      part = text === "" && piece !== ""; // of a character that a later token completes
    (inText ? splitAtBreak(text || piece) : [piece]).forEach((end, i) => {
      const node = putOne(l, parent, end, ...more);
      if (part) node.querySelector(".sd-w").replaceChildren();
      if (i) node.querySelectorAll(".sd-m").forEach((mark) => mark.remove()); // one mark a token
      if (inText && /\n/.test(end)) parent.append(html("br"));
    });
  }

  /* A button that breaks and joins like text, so no <button>. */
  function putOne(l, parent, piece, state, from, judged, about) {
    const node = createChip(W, piece, state, "span", statusOf(W, state, about) + levelOf(about));
    setUp(node, { role: "button", tabindex: -1 }, []);
    node.prepend(...prose(piece, node.hasAttribute("data-unnamed")));
    node.classList.add("sd-fut");
    const item = { node, state, from, judged, now: "fut", lane: l, piece, ...about };
    node.item = item;
    chips.push(item);
    parent.append(node);
    return node;
  }

  /* A token as part of a sentence: its spaces outside of the tint, its line break as one. */
  function prose(piece, unnamed) {
    const [, spaces, rest] = /** @type {RegExpExecArray} */ (
      /^([ \t]*)([^]*)$/.exec(piece.replace(/\n/g, ""))
    );
    return [
      html("span", { class: "sd-lead" }, spaces),
      rest || unnamed ? html("span", { class: "sd-w" }, makeVisible(rest) || "…") : "",
    ];
  }

  const levelOf = ({ cycle, draft }) =>
    draft && cycle.tree ? ", " + fillText(W.tree.level, { level: draft.level }) : "";

  function paintChips() {
    const latest = countCyclesBy(speculativeOf(S.run).cycles, S.t);
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

  /* What a cycle threw away stands until the next one begins or the text ends; where cycles pass in a blink, it would
   * only flicker. In prose only the path of a tree ever shows. */
  function paintGroups() {
    const { cycles, end } = speculativeOf(S.run),
      ended = isOver(S.run) && isAtEnd(S) && !S.all,
      blink = S.playing && cycles.length > 0 && (end / cycles.length) * S.slow < SEEN;
    for (const { group, cycle, all, tree } of groups) {
      const next = all[cycle.number],
        past = next ? S.t + EPS >= firstTokenMs(next) : ended;
      if (tree) group.classList.toggle("sd-fut", S.t + EPS < firstTokenMs(cycle));
      group.classList.toggle("sd-past", past || (!S.all && (tree || blink)));
    }
  }

  /* A full lane follows its newest words, unless the visitor has scrolled up. Asked after a frame, when it is laid
   * out. */
  function follow() {
    for (const box of laneBoxes()) {
      const { clientHeight: height, scrollHeight: full, scrollTop: top } = box;
      if (full > height && top + height > Math.min(box.full || 0, full) - NEAR)
        box.scrollTop = full;
      box.full = full;
      const over = full > height + 1;
      box.classList.toggle("sd-over", over);
      box.tabIndex = over ? 0 : -1; // who has no wheel scrolls by keys
    }
  }

  const find = (draft) => chips.find((one) => one.draft === draft);

  function paint() {
    paintChips();
    paintGroups();
  }

  return { clear, build, paint, follow, find };
}
