/* Writes each lane as text: tokens are built as their cycles arrive, and time only changes their classes. In prose the
 * pieces of a word join, and a rejected word becomes small once its cycle is past. With `view.asChips` every token is a
 * chip with its mark, and trees are drawn as trees. */

import { EPS, speculativeOf, plainOf, peerOf, lanesOf, isOver, isAtEnd } from "#page/race/run.js";
import { findTip, firstTokenMs, depthOf } from "#page/race/cycle.js";
import { countCyclesBy } from "#page/race/measure.js";
import { makeVisible, fillText } from "#page/race/text.js";
import { setUp, html } from "#page/race/html.js";
import { splitAtBreak, createChip, statusOf, createPrompt } from "#page/race/tokens.js";

const FOLLOW_PX = 60; // px; a lane scrolled this near to its end follows new text
const PROMPT_LENGTH = 64; // characters of a prompt's last line
const MIN_CYCLE_MS = 250; // ms that a cycle must last on the screen for its drafts to be seen

/* `view` holds the run on show and its moment `view.timeMs`. */
export function createLanes(texts, part, view) {
  let chips = [],
    groups = [],
    builtCycles = [];

  const laneBoxes = () => [part.lane0, part.lane1, part.lane2];
  const drafts = (laneIndex) => laneIndex !== 1; // all lanes but the plain one

  /* Shortens the prompt to its last words, which lead into the text; the whole prompt stands above. */
  function lastWords(prompt) {
    const last = prompt.split("\n").pop();
    return makeVisible(last.length > PROMPT_LENGTH ? "… " + last.slice(4 - PROMPT_LENGTH).trimStart() : last);
  }

  function clear() {
    chips = [];
    groups = [];
    builtCycles = view.run.names.map(() => -1);
    laneBoxes().forEach((box) => {
      box.replaceChildren(createPrompt(view.run.header, lastWords));
      box.full = 0;
    });
    [part.peer.hidden, part.other.hidden] = [!peerOf(view.run), !plainOf(view.run)];
    part.rows.replaceChildren(
      ...[texts.lane.speculative, peerOf(view.run) && texts.lane.peer, plainOf(view.run) && texts.lane.plain]
        .filter(Boolean)
        .map((name) => html("span", {}, name)),
    );
    part.stage.toggleAttribute("data-code", view.run.header.kind === "code");
  }

  function build() {
    lanesOf(view.run).forEach((lane, laneIndex) => {
      if (builtCycles[laneIndex] < 0 && lane.prefill) {
        if (lane.prefill.cycle) buildCycle(laneIndex, lane.prefill.cycle);
        else
          lane.prefill.pieces.forEach((piece, i) =>
            addToken(laneIndex, laneBoxes()[laneIndex], { piece, text: lane.prefill.texts[i] }, "pla", 0, 0, {
              targetToken: lane.prefill,
              place: "first",
            }),
          );
        laneBoxes()[laneIndex].append(html("span", { class: "sd-gap" }));
        builtCycles[laneIndex] = 0;
      }
      for (; builtCycles[laneIndex] >= 0 && builtCycles[laneIndex] < lane.cycles.length; builtCycles[laneIndex]++)
        buildCycle(laneIndex, lane.cycles[builtCycles[laneIndex]], lane.cycles);
    });
  }

  function buildCycle(laneIndex, cycle, all = []) {
    const box = laneBoxes()[laneIndex];
    const group = html("span", { class: "sd-cyc" }),
      judgedMs = cycle.check ? cycle.check.end : cycle.endMs;
    const place = cycle.tree ? growTree(group, cycle) : () => group;
    if (drafts(laneIndex)) groups.push({ group, cycle, all, tree: cycle.tree });
    cycle.drafts.forEach((draft, i) =>
      addToken(laneIndex, place(i, draft.parent), draft, draft.state, draft.readyMs, judgedMs, {
        cycle,
        draft,
        i,
      }),
    );
    if (cycle.targetToken)
      addToken(
        laneIndex,
        place(cycle.drafts.length, findTip(cycle)),
        cycle.targetToken,
        cycle.targetToken.state,
        cycle.endMs,
        cycle.endMs,
        { cycle, targetToken: cycle.targetToken },
      );
    box.append(group);
    if (drafts(laneIndex)) box.append(html("span", { class: "sd-gap" }));
  }

  /* Builds a tree of drafts: siblings stand below each other, children to the right of their parent. Returns a function
   * that makes the place of a draft. */
  function growTree(tree, cycle) {
    const nodes = { "-1": tree };
    setUp(
      tree,
      {
        class: "sd-cyc sd-tree",
        role: "group",
        "aria-label": fillText(texts.tree.aria, { n: cycle.drafts.length, levels: depthOf(cycle) }),
      },
      [],
    );
    return (i, parent) => {
      const parentNode = nodes[parent];
      if (!parentNode.kids) parentNode.append((parentNode.kids = html("span", { class: "sd-kids" })));
      parentNode.kids.append((nodes[i] = html("span", { class: "sd-node" })));
      return nodes[i];
    };
  }

  /* Adds a token to a lane; only a token that joins the text may break a line. */
  function addToken(laneIndex, parent, { piece, text }, ...more) {
    const [state] = more,
      inText = !["rej", "dis", "cut"].includes(state),
      isPartial = text === "" && piece !== ""; // a later token completes its character
    (inText ? splitAtBreak(text || piece) : [piece]).forEach((text, i) => {
      const node = addPiece(laneIndex, parent, text, ...more);
      if (isPartial) node.querySelector(".sd-token-text").replaceChildren();
      if (i) node.querySelectorAll(".sd-m").forEach((mark) => mark.remove()); // a token has one mark
      if (inText && /\n/.test(text)) parent.append(html("br"));
    });
  }

  /* Adds a chip that acts as a button but breaks and joins like text, as a <button> cannot. */
  function addPiece(laneIndex, parent, piece, state, shownMs, judgedMs, details) {
    const node = createChip(texts, piece, state, "span", statusOf(texts, state, details) + levelText(details));
    setUp(node, { role: "button", tabindex: -1 }, []);
    node.prepend(...proseParts(piece, node.hasAttribute("data-unnamed")));
    node.classList.add("sd-fut");
    const item = { node, state, shownMs, judgedMs, shownState: "fut", lane: laneIndex, piece, ...details };
    node.item = item;
    chips.push(item);
    parent.append(node);
    return node;
  }

  /* Creates a token's parts for prose: leading spaces without a tint, then the rest; `addToken` adds line breaks. */
  function proseParts(piece, unnamed) {
    const [, spaces, rest] = /** @type {RegExpExecArray} */ (/^([ \t]*)([^]*)$/.exec(piece.replace(/\n/g, "")));
    return [
      html("span", { class: "sd-lead" }, spaces),
      rest || unnamed ? html("span", { class: "sd-token-text" }, makeVisible(rest) || "…") : "",
    ];
  }

  const levelText = ({ cycle, draft }) =>
    draft && cycle.tree ? ", " + fillText(texts.tree.level, { level: draft.level }) : "";

  function paintChips() {
    const currentCycle = countCyclesBy(speculativeOf(view.run).cycles, view.timeMs);
    for (const item of chips) {
      const now = view.timeMs + EPS < item.shownMs ? "fut" : view.timeMs + EPS < item.judgedMs ? "pen" : item.state;
      const reach = now !== "fut" && item.lane === 0 && item.cycle && item.cycle.number === currentCycle ? 0 : -1;
      if (item.tabIndex !== reach) item.node.tabIndex = item.tabIndex = reach;
      if (item.shownState === now) continue;
      item.shownState = now;
      item.node.className = "sd-tok " + (now === "fut" ? "sd-fut sd-" + item.state : "sd-" + now);
      item.node.classList.toggle("sd-unmarked", now === "pen");
      item.node.classList.toggle("sd-kept", ["acc", "res", "bon"].includes(now));
    }
  }

  /* Marks a cycle as past once the next one begins or the text ends; in prose this hides its discarded tokens. If
   * cycles pass too fast, prose shows them as past at once, and of a tree always only its accepted path. */
  function paintGroups() {
    const { cycles, endMs } = speculativeOf(view.run),
      ended = isOver(view.run) && isAtEnd(view) && !view.asChips,
      tooFast = view.playing && cycles.length > 0 && (endMs / cycles.length) * view.slowdown < MIN_CYCLE_MS;
    for (const { group, cycle, all, tree } of groups) {
      const next = all[cycle.number], // numbers count from 1
        isPast = next ? view.timeMs + EPS >= firstTokenMs(next) : ended;
      if (tree) group.classList.toggle("sd-fut", view.timeMs + EPS < firstTokenMs(cycle));
      group.classList.toggle("sd-past", isPast || (!view.asChips && (tree || tooFast)));
    }
  }

  /* Scrolls a full lane to its newest words, unless the visitor has scrolled up. `draw` in `player.js` calls it by a
   * timer, when the layout is done. */
  function followNewest() {
    for (const box of laneBoxes()) {
      const { clientHeight: height, scrollHeight: fullHeight, scrollTop: scrollTop } = box;
      if (fullHeight > height && scrollTop + height > Math.min(box.full || 0, fullHeight) - FOLLOW_PX)
        box.scrollTop = fullHeight;
      box.full = fullHeight;
      const overflows = fullHeight > height + 1;
      box.classList.toggle("sd-over", overflows);
      box.tabIndex = overflows ? 0 : -1; // so that keys can scroll it
    }
  }

  const itemOf = (draft) => chips.find((one) => one.draft === draft);

  function paint() {
    paintChips();
    paintGroups();
  }

  return { clear, build, paint, followNewest, itemOf };
}
