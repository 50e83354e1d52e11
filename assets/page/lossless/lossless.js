/* Shows the certificate that says whether decoding is lossless. `reading.js` interprets it. */

import { html, createChoice, findParts } from "#page/race/html.js";
import { fillText, makeVisible } from "#page/race/text.js";
import { formatCount } from "#page/lossless/format.js";
import { createStamps } from "#page/lossless/stamps.js";
import { createVerdictTexts } from "#page/lossless/verdict.js";
import { createClosedForm } from "#page/lossless/closed.js";
import { createSampled } from "#page/lossless/sampled.js";
import { createGreedyText } from "#page/lossless/greedy.js";
import { createMistakes } from "#page/lossless/mistakes.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

/** @param {HTMLElement} element @param {Props} props @param {Watch} watch @param {Trigger} trigger
 * @param {Server} server @param {Player} player */
function mountLossless(element, props, watch, trigger, server, player) {
  const texts = JSON.parse(props.words),
    playerTexts = player.words,
    root = element.querySelector(".sd-proof"),
    part = findParts(root);
  const DRAW_COUNTS = JSON.parse(props.draws),
    recordedPairs = /** @type {Record<string, Record<string, Certificate>>} */ ({});
  const view = {
    pair: "toy",
    mistake: "",
    draws: DRAW_COUNTS[DRAW_COUNTS.length - 1],
    live: /** @type {any} */ (null),
    request: /** @type {any} */ (null),
    frameId: 0,
    running: false,
  };

  /** @param {string} pair @param {string} mistake */
  const recordedOf = (pair, mistake) => (recordedPairs[pair] || {})[mistake] || null;
  const stamps = createStamps(texts, part),
    describeVerdict = createVerdictTexts(texts),
    paintClosed = createClosedForm(texts, stamps.setCheck),
    paintSampled = createSampled(texts, stamps.setCheck),
    paintGreedy = createGreedyText(texts, playerTexts, stamps.setCheck),
    paintMistakes = createMistakes(
      texts,
      root,
      part,
      () => view.mistake,
      (mistake) => setChoice({ mistake }),
    );
  const isRequested = () =>
    view.request &&
    view.request.pair === view.pair &&
    view.request.mistake === view.mistake &&
    (view.pair !== "embedded" || view.request.text === part.text.value);
  const isLive = () => Boolean(view.live && isRequested());

  async function fetchRecorded(/** @type {string} */ pair) {
    recordedPairs[pair] = await server.recorded_certificates(pair).catch(() => ({}));
    draw();
  }

  function currentCertificate() {
    if (isLive()) return view.live;
    return view.pair !== "embedded" || part.text.value === props.text ? recordedOf(view.pair, view.mistake) : null;
  }

  function draw() {
    if (!root.clientWidth) return;
    const certificate = currentCertificate();
    paintControls();
    part.badge.replaceChildren(html("i", {}), isLive() ? texts.badge.live : texts.badge.recorded);
    part.badge.hidden = !certificate;
    root.dataset.source = isLive() ? "live" : "recorded";
    if (!certificate) return paintNothing();
    part.place.textContent = fillText(texts.place[view.pair], {
      ...certificate,
      text: makeVisible(certificate.text.join("").trim()),
    });
    const { kind, title, sentence } = describeVerdict(certificate, view.draws);
    stamps.setVerdict(kind, title, sentence);
    paintClosed(certificate);
    paintSampled(certificate, view.draws, isLive(), view.running ? view.request?.draws : 0);
    paintGreedy(certificate);
  }

  function paintNothing() {
    for (const name of ["verdict", "closed", "sampled", "greedy"]) stamps.clearCheck(name);
    part.place.textContent = view.running ? texts.rail.starting : recordedPairs[view.pair] ? texts.nothing : "";
  }

  function paintControls() {
    paintMistakes();
    pressPair(view.pair);
    part.text.closest("label").hidden = view.pair !== "embedded";
    part.drawsvalue.textContent = formatCount(view.draws);
    part.draws.setAttribute("aria-valuetext", formatCount(view.draws));
    part.run.disabled = view.running;
    part.stop.disabled = !view.running;
    const doneDraws = view.running && isLive() ? view.live.done : 0;
    part.progress.hidden = !view.running;
    part.progress.value = view.request ? doneDraws / view.request.draws : 0;
    if (doneDraws)
      showStatus(
        fillText(texts.sampled.progress, {
          done: formatCount(doneDraws),
          draws: formatCount(view.request.draws),
        }),
      );
  }

  function showStatus(/** @type {string} */ text, wrong = false) {
    if (part.status.textContent !== text) part.status.textContent = text;
    part.status.classList.toggle("sd-wrong", wrong);
  }

  function setChoice(/** @type {any} */ change) {
    Object.assign(view, change);
    if (!recordedPairs[view.pair]) fetchRecorded(view.pair);
    if (view.running && !isRequested()) stop();
    if (!isRequested()) showStatus(""); // it is of another choice
    draw();
  }

  function run() {
    const request = {
      pair: view.pair,
      mistake: view.mistake,
      draws: view.draws,
      seed: Math.floor(Math.random() * 2 ** 31),
      text: part.text.value,
    };
    Object.assign(view, { request, live: null, running: true });
    showStatus(texts.rail.starting);
    trigger("submit", request);
    draw();
  }

  function stop() {
    trigger("stop");
    markEnded();
  }

  function markEnded() {
    if (!view.running) return;
    view.running = false;
    const done = view.live?.sampled.at(-1)?.[0] ?? 0; // only whole samples are tested
    if (props.wrong) showStatus(props.said, true);
    else if (done < view.request.draws) showStatus(fillText(texts.rail.stopped, { done: formatCount(done) }));
    draw();
  }

  /* Draws the newest update, at most once per frame; none of an earlier choice or after Stop. */
  function takeUpdate() {
    if (!view.running || !props.value) return;
    const certificate = JSON.parse(props.value);
    if (certificate.pair !== view.request.pair || certificate.mistake !== view.request.mistake) return;
    const { exact } = recordedOf(certificate.pair, certificate.mistake) || {};
    view.live = { ...certificate, exact };
    view.frameId ||= requestAnimationFrame(() => {
      view.frameId = 0;
      draw();
    });
  }

  const pressPair = createChoice(part.pair, Object.entries(texts.rail.pairs), (pair) => setChoice({ pair }));

  const railTexts = texts.rail,
    labels = {
      pairlabel: railTexts.pair,
      textlabel: railTexts.text,
      railtitle: railTexts.title,
      raillead: railTexts.lead,
      choicetitle: railTexts.choice,
      drawslabel: railTexts.draws,
      run: railTexts.run,
      stop: railTexts.stop,
    };
  for (const [name, label] of Object.entries(labels)) part[name].textContent = label;
  for (const name of ["bugs", "others", "aside"]) part[name].setAttribute("aria-label", railTexts.title);
  part.choices.setAttribute("aria-label", railTexts.choice);
  part.pair.setAttribute("aria-label", railTexts.pair);
  part.progress.setAttribute("aria-label", railTexts.run);
  part.text.value = props.text;
  part.draws.max = DRAW_COUNTS.length - 1;
  part.draws.value = DRAW_COUNTS.length - 1;
  part.text.oninput = () => setChoice({});
  part.draws.oninput = () => setChoice({ draws: DRAW_COUNTS[+part.draws.value] });
  part.run.onclick = run;
  part.stop.onclick = stop;
  watch("value", takeUpdate);
  watch(["said", "wrong"], () => showStatus(props.said, props.wrong === true));
  watch("ended", markEnded);
  new ResizeObserver(draw).observe(root);
  setChoice({});
}

/** @type {Mount} */
export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => mountLossless(element, props, watch, trigger, server, player));
