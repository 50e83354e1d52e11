/* Be the big model: ten guesses of the small one, kept or rejected by the visitor, then by the rule. */

import { h, s, text, rect, chip, parts, copied, answer, button } from "#page/race/kit.js";
import { words, chance, visible } from "#page/race/text.js";
import { newReader, read } from "#page/race/log.js";
import { speculative } from "#page/race/run.js";
import { GAME, chanceOf, guessesOf, rounds, scored } from "#page/step/guesses.js";
import { whenPlayed } from "#page/shared/arrival.js";

const BEFORE = 160, // characters of the text before a guess
  WIDTH = 360,
  NAMES = 150; // px of the bars, and of their names

function game(element, props, server, player) {
  const W = JSON.parse(props.words),
    root = element.querySelector(".sd-game"),
    part = parts(root);
  const S = {
    run: /** @type {any} */ (null),
    game: -1,
    judged: /** @type {any[]} */ ([]),
    said: /** @type {boolean[]} */ ([]),
  };

  const show = (...nodes) => part.board.replaceChildren(...nodes.flat().filter(Boolean));
  /* A second click of a double one would land on what stands there by then. */
  const press = (name, act) =>
    button(W[name], ({ detail }) => detail > 1 || act(), "sd-btn sd-primary");

  /* The run on the stage, if it holds ten such guesses; else the recorded one. */
  async function begin() {
    const own = player.run();
    if (S.game < 0)
      S.run = own && guessesOf(speculative(own)).length >= GAME ? own : await recorded();
    if (!S.run) return show(h("p", { class: "sd-wrong" }, W.none));
    S.game++;
    S.judged = rounds(guessesOf(speculative(S.run)), S.game);
    S.said = [];
    ask();
    root.scrollIntoView({ block: "nearest" });
  }

  async function recorded() {
    const reader = newReader();
    read(reader, await server.sampled_run().catch(() => ""));
    return reader.run;
  }

  function ask() {
    const one = S.judged[S.said.length],
      { prompt, models } = S.run.header,
      isAsked = Boolean((models || {}).chat),
      whole = (isAsked ? "" : prompt) + one.before,
      before = whole.slice(-BEFORE);
    show(
      h(
        "p",
        { class: "sd-sub" },
        words(W.count, { n: S.said.length + 1, of: S.judged.length }),
        " ",
        squares(),
      ),
      isAsked ? h("p", { class: "sd-sub" }, words(W.asked, { prompt })) : null,
      h(
        "p",
        { class: "sd-game-text" },
        before.length < whole.length ? "…" : "",
        before,
        chip(player.words, one.piece, "pen", "span"),
      ),
      bars(one),
      h(
        "p",
        { class: "sd-game-acts" },
        press("keep", () => judge(true)),
        press("reject", () => judge(false)),
      ),
    );
    tell(one.piece.trim() || visible(one.piece));
  }

  /* What both models think of it, to scale. */
  function bars({ p, q }) {
    const most = Math.max(p, q, 1e-6),
      row = (name, value, cls, y) => [
        text(0, y + 13, W[name]),
        rect(NAMES, y, (value / most) * (WIDTH - NAMES - 64), 16, { class: cls }),
        text(NAMES + (value / most) * (WIDTH - NAMES - 64) + 8, y + 13, chance(value), "sd-b"),
      ];
    return s(
      "svg",
      {
        width: WIDTH,
        height: 48,
        role: "img",
        "aria-label": `${W.target} ${chance(p)}, ${W.draft} ${chance(q)}`,
      },
      row("target", p, "sd-f-target", 2),
      row("draft", q, "sd-f-draft sd-s-draft", 26),
    );
  }

  function judge(keep) {
    const one = S.judged[S.said.length],
      r = chanceOf(one),
      values = { p: chance(one.p), q: chance(one.q), r: chance(r), u: one.u.toFixed(2) };
    S.said.push(keep);
    const over = S.said.length === S.judged.length,
      why = r === 1 ? W.sure : words(one.kept ? W.kept : W.gone, values),
      [asked, acts] = [part.board.children[0], part.board.lastElementChild];
    asked.lastElementChild.replaceWith(squares());
    part.board
      .querySelector(".sd-tok")
      .replaceWith(chip(player.words, one.piece, one.kept ? "acc" : "rej", "span"));
    acts.replaceWith(
      h("p", {}, h("b", {}, keep === one.kept ? W.same : W.other), " ", why),
      h("p", { class: "sd-game-acts" }, press(over ? "end" : "next", over ? end : ask)),
    );
    tell((keep === one.kept ? W.same : W.other) + " " + why);
  }

  function end() {
    const of = S.judged.length,
      found = scored(S.judged, S.said),
      result = words(W.result, { n: found.agreed, of });
    show(
      h("p", { class: "sd-game-result" }, result, " ", squares()),
      found.eager ? h("p", {}, words(W.eager, { n: found.eager })) : null,
      found.wasted ? h("p", {}, words(W.wasted, { n: found.wasted })) : null,
      h(
        "p",
        {},
        words(W.lesson, { of, likelier: found.likelier.toFixed(1), coin: found.coin.toFixed(1) }),
      ),
      h("p", { class: "sd-game-acts" }, press("again", begin), button(W.share, share)),
    );
    tell(result);
  }

  async function share({ currentTarget }) {
    const { agreed } = scored(S.judged, S.said),
      values = words(W.shared, { n: agreed, of: S.judged.length }),
      { origin, pathname, protocol } = location,
      link = protocol.startsWith("http") ? `\n${origin}${pathname}?tab=step` : "";
    answer(
      currentTarget,
      (await copied(`${values}\n${marks("🟩", "⬜")}${link}`)) ? W.copied : W.refused,
    );
  }

  const marks = (same, other) =>
    S.said.map((keep, i) => (keep === S.judged[i].kept ? same : other)).join("");
  const squares = () =>
    h("span", { class: "sd-game-marks", "aria-hidden": "true" }, marks("■", "□"));

  /* Said aloud; what had the focus is gone, so the next button gets it. */
  function tell(values) {
    part.announce.textContent = values;
    const acts = part.board.querySelector(".sd-game-acts");
    acts?.scrollIntoView({ block: "nearest" });
    acts?.firstElementChild.focus({ preventScroll: true });
  }

  /* The end of a race asks for it; it may have done so before this tab was there. */
  function wanted() {
    if (!player.wantsGame) return;
    player.wantsGame = false;
    root.scrollIntoView({ block: "center" });
    part.board.querySelector("button")?.focus({ preventScroll: true });
  }

  root.addEventListener("keydown", (event) => {
    if (event.repeat) event.preventDefault(); // nor does a key that is held
  });
  part.title.textContent = W.title;
  part.lead.textContent = W.lead;
  part.board.setAttribute("aria-label", W.title);
  show(h("p", { class: "sd-game-acts" }, press("start", begin)));
  player.addEventListener("sd-game", () => requestAnimationFrame(wanted));
  wanted();
}

export const mount = (element, props, watch, trigger, server) =>
  whenPlayed((player) => game(element, props, server, player));
