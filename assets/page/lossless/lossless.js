/* The certificate: is this decoding lossless? Draws what the engine computed, recorded or live; it computes none of it.
 *
 * What is read off a certificate is in reading.js. Elements are made by the player's kit. Texts come from `words`;
 * tokens are inserted as text, never as markup: one may be `<script>`. */

import { html, createChoice, findParts } from "#page/race/html.js";
import { fillText, makeVisible } from "#page/race/text.js";
import { formatCount } from "#page/lossless/format.js";
import { createSigns } from "#page/lossless/stamps.js";
import { createVerdictTexts } from "#page/lossless/verdict.js";
import { createClosedForm } from "#page/lossless/closed.js";
import { createSampled } from "#page/lossless/sampled.js";
import { createGreedyText } from "#page/lossless/greedy.js";
import { createMistakes } from "#page/lossless/mistakes.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

function lossless(element, props, watch, trigger, server, player) {
  const W = JSON.parse(props.words),
    PW = player.words,
    root = element.querySelector(".sd-proof"),
    part = findParts(root);
  const DRAWS = JSON.parse(props.draws),
    RECORDED = {};
  const S = {
    pair: "toy",
    mistake: "",
    draws: DRAWS[DRAWS.length - 1],
    live: /** @type {any} */ (null),
    asked: /** @type {any} */ (null),
    frame: 0,
    running: false,
  };

  const recorded = (pair, mistake) => (RECORDED[pair] || {})[mistake] || null;
  const signed = createSigns(W, part),
    inWords = createVerdictTexts(W, W.mistakes),
    paintClosed = createClosedForm(W, signed.level),
    paintSampled = createSampled(W, signed.level),
    paintGreedy = createGreedyText(W, PW, signed.level),
    paintMistakes = createMistakes(
      W,
      root,
      part,
      W.mistakes,
      () => S.mistake,
      (mistake) => choose({ mistake }),
    );
  const isAsked = () =>
    S.asked &&
    S.asked.pair === S.pair &&
    S.asked.mistake === S.mistake &&
    (S.pair !== "embedded" || S.asked.text === part.text.value);
  const isLive = () => Boolean(S.live && isAsked());

  /* A pair's certificate is fetched when it is first shown, so that the page itself stays light. */
  async function fetchRecorded(pair) {
    RECORDED[pair] = await server.recorded_certificates(pair).catch(() => ({}));
    draw();
  }

  function current() {
    if (isLive()) return S.live;
    return S.pair !== "embedded" || part.text.value === props.text
      ? recorded(S.pair, S.mistake)
      : null;
  }

  function draw() {
    if (!root.clientWidth) return;
    const certificate = current();
    paintRail();
    part.badge.replaceChildren(html("i", {}), isLive() ? W.badge.live : W.badge.recorded);
    part.badge.hidden = !certificate;
    root.dataset.source = isLive() ? "live" : "recorded";
    if (!certificate) return paintNothing();
    part.place.textContent = fillText(W.place[S.pair], {
      ...certificate,
      text: makeVisible(certificate.text.join("").trim()),
    });
    const { kind, said } = inWords(certificate, S.draws);
    signed.verdict(kind, W.verdict[kind], said);
    paintClosed(certificate);
    paintSampled(certificate, S.draws);
    paintGreedy(certificate);
  }

  function paintNothing() {
    for (const name of ["verdict", "closed", "sampled", "greedy"]) part[name].replaceChildren();
    part.place.textContent = S.running ? W.rail.starting : RECORDED[S.pair] ? W.nothing : "";
  }

  /* -- the rail -- */

  function paintRail() {
    paintMistakes();
    pressPair(S.pair);
    part.text.closest("label").hidden = S.pair !== "embedded";
    part.drawsvalue.textContent = formatCount(S.draws);
    part.draws.setAttribute("aria-valuetext", formatCount(S.draws));
    part.run.disabled = S.running;
    part.stop.disabled = !S.running;
    const now = S.running && isLive() ? S.live.done : 0;
    part.progress.hidden = !S.running;
    part.progress.value = S.asked ? now / S.asked.draws : 0;
    if (now)
      say(
        fillText(W.sampled.progress, { done: formatCount(now), draws: formatCount(S.asked.draws) }),
      );
  }

  function say(line, wrong = false) {
    if (part.said.textContent !== line) part.said.textContent = line;
    part.said.classList.toggle("sd-wrong", wrong);
  }

  function choose(change) {
    Object.assign(S, change);
    if (!RECORDED[S.pair]) fetchRecorded(S.pair);
    if (S.running && !isAsked()) stop();
    else if (change.pair) say("");
    draw();
  }

  function run() {
    const asked = {
      pair: S.pair,
      mistake: S.mistake,
      draws: S.draws,
      seed: Math.floor(Math.random() * 2 ** 31),
      text: part.text.value,
    };
    Object.assign(S, { asked, live: null, running: true });
    say(W.rail.starting);
    trigger("submit", asked);
    draw();
  }

  function stop() {
    trigger("stop");
    over();
  }

  function over() {
    if (!S.running) return;
    S.running = false;
    const done = S.live ? S.live.done : 0;
    if (props.wrong) say(props.said, true);
    else if (done < S.asked.draws) say(fillText(W.rail.stopped, { done: formatCount(done) }));
    draw();
  }

  /* Updates that arrive after Stop, or belong to an earlier request, are ignored. At most one a frame is drawn, the
   * newest; a hidden page draws it when it is shown again. */
  function arrived() {
    if (!S.running || !props.value) return;
    const certificate = JSON.parse(props.value);
    if (certificate.pair !== S.asked.pair || certificate.mistake !== S.asked.mistake) return;
    const { exact } = recorded(certificate.pair, certificate.mistake) || {};
    S.live = { ...certificate, exact };
    S.frame ||= requestAnimationFrame(() => {
      S.frame = 0;
      draw();
    });
  }

  /* -- fixed labels, and event handlers -- */

  const pressPair = createChoice(part.pair, Object.entries(W.rail.pairs), (pair) =>
    choose({ pair }),
  );

  const R = W.rail,
    labels = {
      pairlabel: R.pair,
      textlabel: R.text,
      railtitle: R.title,
      raillead: R.lead,
      drawslabel: R.draws,
      run: R.run,
      stop: R.stop,
    };
  for (const [name, label] of Object.entries(labels)) part[name].textContent = label;
  for (const name of ["bugs", "others", "aside"]) part[name].setAttribute("aria-label", R.title);
  part.pair.setAttribute("aria-label", R.pair);
  part.progress.setAttribute("aria-label", R.run);
  part.text.value = props.text;
  part.draws.max = DRAWS.length - 1;
  part.draws.value = DRAWS.length - 1;
  part.text.oninput = () => choose({});
  part.draws.oninput = () => choose({ draws: DRAWS[+part.draws.value] });
  part.run.onclick = run;
  part.stop.onclick = stop;
  watch("value", arrived);
  watch(["said", "wrong"], () => say(props.said, props.wrong === true));
  watch("ended", over);
  new ResizeObserver(draw).observe(root);
  choose({});
}

export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => lossless(element, props, watch, trigger, server, player));
