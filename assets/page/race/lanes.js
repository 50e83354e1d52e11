/* Writes each lane as text. Elements are created when a cycle arrives; later, the replay only changes their classes. By
 * default a lane is prose: tokens join into words, and a rejected token becomes small once its cycle is past. With
 * `view.asChips` every token is a chip with a mark, and a draft tree is drawn as a tree. */

import { EPS, speculativeOf, plainOf, peerOf, lanesOf, isOver, isAtEnd } from "#page/race/run.js";
import { findTip, firstTokenMs, depthOf } from "#page/race/cycle.js";
import { countCyclesBy } from "#page/race/measure.js";
import { makeVisible, formatPiece, fillText, nameOf } from "#page/race/text.js";
import { setUp, html } from "#page/race/html.js";
import { splitAtBreak, createChip, statusOf, createPrompt } from "#page/race/tokens.js";

const FOLLOW_PX = 60; // a lane scrolled this near to its end follows new text
const PROMPT_LENGTH = 64; // characters of a prompt's last line, with "… "
const MIN_CYCLE_MS = 250; // ms that a cycle must last on the screen for its drafts to be seen

export function createLanes(/** @type {PlayerTexts} */ texts, /** @type {Parts} */ part, /** @type {View} */ view) {
  let chips = /** @type {TokenItem[]} */ ([]),
    groups = /** @type {{ group: Part, cycle: Cycle, laneCycles: Cycle[], tree: boolean }[]} */ ([]),
    builtCycles = /** @type {number[]} */ ([]);

  const laneBoxes = () => [part.lane0, part.lane1, part.lane2];
  const hasDrafts = (/** @type {number} */ laneIndex) => laneIndex !== 1; // all lanes but the plain one

  /* Shortens the prompt to the end of its last line, which the lane's text continues. */
  function lastWords(/** @type {string} */ prompt) {
    const last = prompt.replace(/^[^]*\n/, "");
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
  }

  function build() {
    lanesOf(view.run).forEach((lane, laneIndex) => {
      const { prefill } = lane;
      if (builtCycles[laneIndex] < 0 && prefill) {
        const isCode = view.run.header.kind === "code" || /^\s*```/.test(prefill.texts.join(""));
        if (laneIndex === 0) part.stage.toggleAttribute("data-code", isCode);
        if (prefill.cycle) buildCycle(laneIndex, prefill.cycle, lane.cycles);
        else
          prefill.pieces.forEach((piece, i) =>
            addToken(laneIndex, laneBoxes()[laneIndex], { piece, text: prefill.texts[i] }, "plain", 0, 0, {
              targetToken: prefill,
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

  /** @param {number} laneIndex @param {Cycle} cycle @param {Cycle[]} [laneCycles] */
  function buildCycle(laneIndex, cycle, laneCycles = []) {
    const box = laneBoxes()[laneIndex];
    const group = html("span", { class: "sd-cyc" }),
      judgedMs = cycle.check ? cycle.check.end : cycle.endMs;
    const place = cycle.tree ? growTree(group, cycle) : () => group;
    if (hasDrafts(laneIndex)) groups.push({ group, cycle, laneCycles, tree: cycle.tree });
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
    if (hasDrafts(laneIndex)) box.append(html("span", { class: "sd-gap" }));
  }

  /* Prepares `group` for a draft tree: siblings stand below each other, children to the right of their parent. Returns
   * a function that creates the element for one token. */
  function growTree(/** @type {Part} */ group, /** @type {Cycle} */ cycle) {
    const nodes = /** @type {Record<number, Part>} */ ({ "-1": group });
    setUp(
      group,
      {
        class: "sd-cyc sd-tree",
        role: "group",
        "aria-label": fillText(texts.tree.aria, { n: cycle.drafts.length, levels: depthOf(cycle) }),
      },
      [],
    );
    return (/** @type {number} */ i, /** @type {number} */ parent) => {
      const parentNode = nodes[parent];
      if (!parentNode.kids) parentNode.append((parentNode.kids = html("span", { class: "sd-kids" })));
      parentNode.kids.append((nodes[i] = html("span", { class: "sd-node" })));
      return nodes[i];
    };
  }

  /** Adds a token to a lane. Only a token of the committed text can start a new line. @param {number} laneIndex
   * @param {Part} parent @param {{ piece: string, text?: string, character?: string }} token @param {...any} more */
  function addToken(laneIndex, parent, token, ...more) {
    const { piece, text } = token,
      [state] = more,
      inText = !["rejected", "discarded", "cut"].includes(state),
      isPartial = text === "" && piece !== ""; // a later token completes its character
    (inText ? splitAtBreak(text || piece) : [nameOf(texts, token)]).forEach((segment, i) => {
      const node = addPiece(laneIndex, parent, segment, .../** @type {[State, number, number, any]} */ (more));
      if (isPartial) node.querySelector(".sd-token-text").replaceChildren();
      if (i) node.querySelectorAll(".sd-m").forEach((mark) => mark.remove()); // only the first part has a mark
      if (inText && /\n/.test(segment)) parent.append(html("br"));
    });
  }

  /** Adds a chip that acts as a button. It is a <span>, because the text of a <button> does not join its neighbours.
   * @param {number} laneIndex @param {Part} parent @param {string} piece @param {State} state
   * @param {number} shownMs @param {number} judgedMs @param {any} details */
  function addPiece(laneIndex, parent, piece, state, shownMs, judgedMs, details) {
    const node = createChip(texts, piece, state, "span", statusOf(texts, state, details) + levelText(details));
    setUp(node, { role: "button", tabindex: -1 }, []);
    node.prepend(...proseParts(piece, state, node.hasAttribute("data-unnamed")));
    node.classList.add("sd-future");
    node.toggleAttribute("data-sign", /^\s*[^\p{L}\s]\s*$/u.test(piece));
    const item = { node, state, shownMs, judgedMs, shownState: "future", lane: laneIndex, piece, ...details };
    node.item = item;
    chips.push(item);
    parent.append(node);
    return node;
  }

  /** Creates a token's elements for prose: leading spaces without colour, then the rest. `addToken` adds line breaks.
   * Signs show a rejected token of spaces. @param {string} piece @param {State} state @param {boolean} unnamed */
  function proseParts(piece, state, unnamed) {
    if (state === "rejected" && piece && !piece.trim())
      return [html("span", { class: "sd-token-text" }, formatPiece(piece))];
    const [, spaces, rest] = /** @type {RegExpExecArray} */ (/^([ \t]*)([^]*)$/.exec(piece.replace(/\n/g, "")));
    return [
      html("span", { class: "sd-lead" }, spaces),
      rest || unnamed ? html("span", { class: "sd-token-text" }, makeVisible(rest) || "…") : "",
    ];
  }

  const levelText = (/** @type {any} */ { cycle, draft }) =>
    draft && cycle.tree ? ", " + fillText(texts.tree.level, { level: draft.level }) : "";

  function paintChips() {
    const currentCycle = countCyclesBy(speculativeOf(view.run).cycles, view.timeMs);
    for (const item of chips) {
      const now =
        view.timeMs + EPS < item.shownMs ? "future" : view.timeMs + EPS < item.judgedMs ? "pending" : item.state;
      const tabIndex = now !== "future" && item.lane === 0 && item.cycle && item.cycle.number === currentCycle ? 0 : -1;
      if (item.tabIndex !== tabIndex) item.node.tabIndex = item.tabIndex = tabIndex;
      if (item.shownState === now) continue;
      item.shownState = now;
      item.node.className = "sd-tok " + (now === "future" ? "sd-future sd-" + item.state : "sd-" + now);
      item.node.classList.toggle("sd-unmarked", now === "pending");
      item.node.classList.toggle("sd-kept", ["accepted", "resampled", "bonus"].includes(now));
    }
  }

  /* Marks a cycle as past once the next one's first token appears; in prose this hides discarded tokens. Draft trees
   * and fast cycles count in prose as past at once. */
  function paintGroups() {
    const { cycles, endMs } = speculativeOf(view.run),
      ended = isOver(view.run) && isAtEnd(view) && !view.asChips,
      tooFast = view.playing && cycles.length > 0 && (endMs / cycles.length) * view.slowdown < MIN_CYCLE_MS;
    for (const { group, cycle, laneCycles, tree } of groups) {
      const next = laneCycles[cycle.number], // `number` counts from 1; 0 is the prefill
        isPast = next ? view.timeMs + EPS >= firstTokenMs(next) : ended;
      if (tree) group.classList.toggle("sd-future", view.timeMs + EPS < firstTokenMs(cycle));
      group.classList.toggle("sd-past", isPast || (!view.asChips && (tree || tooFast)));
    }
  }

  /* Scrolls a full lane to its newest words, unless the visitor has scrolled up. `draw` in `player.js` calls this from
   * a timer, because then the layout is done. */
  function followNewest() {
    for (const box of laneBoxes()) {
      const { clientHeight: height, scrollHeight: fullHeight, scrollTop: scrollTop } = box;
      if (fullHeight > height && scrollTop + height > Math.min(box.full || 0, fullHeight) - FOLLOW_PX)
        box.scrollTop = fullHeight;
      box.full = fullHeight;
      const overflows = fullHeight > height + 1;
      box.classList.toggle("sd-over", overflows);
      box.tabIndex = overflows ? 0 : -1; // so that keys can scroll the lane
    }
  }

  const itemOf = (/** @type {Draft} */ draft) => chips.find((chip) => chip.draft === draft);

  function paint() {
    paintChips();
    paintGroups();
  }

  return { clear, build, paint, followNewest, itemOf };
}
