/* Runs the page on a pupil's phone, which follows the teacher's page and sends votes. */

import { html, createButton, findParts } from "#page/race/html.js";
import { createQuestionTexts, ringAsked } from "#page/class/question.js";

const GLIDE_MS = 200, // how long the replay takes to glide to the teacher's moment
  FRAME_MS = 33, // between two drawings on the way there
  MAX_GLIDE_MS = 1500; // a replay that is farther behind jumps there
const VOTE_GAP_MS = 200,
  RETRY_MS = 4000;
const KEY = "specdec.phone";

/** `handlers.value()` makes the player read the log in `playerProps.value`. @param {HTMLElement} element
 * @param {Props} props @param {Player} player @param {Props} playerProps @param {Record<string, Act>} handlers */
export function mount(element, props, player, playerProps, handlers) {
  const texts = JSON.parse(props.words),
    quiz = JSON.parse(props.quiz),
    labels = texts.phone,
    { describeQuestion, createBars } = createQuestionTexts(texts, quiz),
    part = findParts(element);
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches,
    phone = phoneName();
  const view = {
    following: true,
    run: "",
    log: "",
    shownRun: "",
    lastEventId: "",
    state: /** @type {any} */ (null),
    problem: "",
    frame: 0,
    chosen: /** @type {any} */ (null),
    voting: false,
  };

  /* Returns a random name, by which the app counts one vote per phone. */
  function phoneName() {
    const name = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
      byte.toString(16).padStart(2, "0"),
    ).join("");
    try {
      sessionStorage.setItem(KEY, sessionStorage.getItem(KEY) || name);
      return sessionStorage.getItem(KEY);
    } catch {
      return name;
    }
  }

  /* -- the class -- */

  function listen() {
    const events = new EventSource(`class/events?phone=${phone}&since=${view.lastEventId}`);
    events.onmessage = ({ data, lastEventId }) => {
      view.lastEventId = lastEventId;
      view.problem = "";
      takeNews(JSON.parse(data));
    };
    events.onerror = () => {
      const isClosed = events.readyState === EventSource.CLOSED; // otherwise the browser reconnects by itself
      view.problem = isClosed ? labels.full : labels.lost;
      setTimeout(paintHead, isClosed ? 0 : 1500);
      if (isClosed) setTimeout(listen, RETRY_MS);
    };
  }

  function takeNews(/** @type {any} */ news) {
    const log = (news.part ? view.log : "") + news.log;
    Object.assign(view, { log, run: news.run, state: news.state });
    if (view.following || view.shownRun === view.run) loadRun();
    if (view.following) glideTo(view.state.cursor);
    paintHead();
    paintQuestion();
  }

  /* Loads the run of the class into the player. */
  function loadRun() {
    if (!view.log) return;
    if (view.shownRun !== view.run || !view.log.startsWith(player.log())) player.load(view.log);
    else if (view.log !== player.log()) {
      playerProps.value = view.log;
      handlers.value();
    }
    view.shownRun = view.run;
    if (view.state.cursor && view.state.cursor.closed && !player.moment().closed) handlers.ended();
  }

  /* Shows the moment that the teacher's page sent. Glides there if that page plays and the moment is just ahead. */
  function glideTo(/** @type {Moment} */ cursor) {
    cancelAnimationFrame(view.frame);
    if (!cursor) return;
    const from = player.moment().t,
      aheadMs = cursor.t - from,
      startedMs = performance.now();
    if (reducedMotion || !cursor.playing || aheadMs <= 0 || aheadMs * Number(cursor.slow) > MAX_GLIDE_MS)
      return player.show(cursor);
    let drawnMs = 0;
    view.frame = requestAnimationFrame(function move(now) {
      const share = Math.min(1, Math.max(0, now - startedMs) / GLIDE_MS);
      if (now - drawnMs >= FRAME_MS || share === 1) {
        drawnMs = now;
        player.show({ ...cursor, t: from + aheadMs * share });
      }
      if (share < 1) view.frame = requestAnimationFrame(move);
    });
  }

  function toggleFollowing() {
    view.following = !view.following;
    document.body.toggleAttribute("data-following", view.following);
    cancelAnimationFrame(view.frame);
    if (view.following) {
      loadRun();
      if (view.state) player.show({ ...view.state.cursor });
    } else player.show({ t: player.moment().t });
    paintHead();
  }

  function paintHead() {
    const followed = view.state?.led === false ? labels.alone : labels.following;
    part.state.textContent = view.problem || (!view.following ? labels.own : view.state?.question ? "" : followed);
    part.state.classList.toggle("sd-wrong", Boolean(view.problem));
    part.toggle.textContent = view.following ? labels.leave : labels.follow;
  }

  /* -- questions -- */

  const ring = () => ringAsked(player, view.following ? view.state?.question : null);

  function paintQuestion() {
    const { question, answer, counts } = view.state;
    part.question.hidden = !question;
    ring();
    if (!question) return;
    const vote = view.voting && view.chosen.question === question.id && !answer ? view.chosen.choice : view.state.vote;
    const worded = describeQuestion(question);
    if (part.question.dataset.id !== question.id) {
      part.question.dataset.id = question.id;
      part.text.replaceChildren(...worded.text);
      part.choices.replaceChildren(
        ...worded.choices.map((/** @type {string} */ label, /** @type {number} */ i) =>
          createButton(label, () => choose(question.id, i)),
        ),
      );
      scrollTo({ top: 0 });
    }
    part.answers.toggleAttribute("data-revealed", Boolean(answer));
    [...part.choices.children].forEach((node, i) => node.setAttribute("aria-pressed", String(i === vote)));
    const shownCounts = counts || worded.choices.map(() => 0); // before the answer, the bars only keep their place
    part.bars.replaceChildren(...createBars(worded.choices, shownCounts, answer ? answer.right : -1, vote));
    const isRight = vote === answer?.right,
      verdict = html("b", { class: isRight ? "sd-cl-hit" : "sd-cl-miss" }, isRight ? labels.right : labels.wrong);
    const next = vote == null ? labels.choose : vote === view.state.vote ? labels.voted : labels.sending,
      judged = vote == null ? [] : [verdict, labels.right.endsWith("。") ? "" : " "];
    part.why.replaceChildren(...(answer ? [...judged, ...worded.why(answer)] : [next]));
  }

  /* Sends one vote at a time. If the pupil chooses again meanwhile, sends the last choice next. */
  async function choose(/** @type {string} */ question, /** @type {number} */ choice) {
    const wasVoting = view.voting;
    Object.assign(view, { chosen: { question, choice }, voting: true });
    paintQuestion();
    if (wasVoting) return;
    for (let sent = null; sent !== view.chosen;) {
      const vote = view.chosen,
        response = await fetch("class/vote", {
          method: "POST",
          body: JSON.stringify({ phone, ...vote }),
        }).catch(() => null);
      if (response && response.status !== 429) sent = vote;
      await new Promise((resolve) => setTimeout(resolve, response ? VOTE_GAP_MS : RETRY_MS));
    }
    view.voting = false;
  }

  part.toggle.onclick = toggleFollowing;
  const setProblem = (/** @type {string} */ problem) => {
    view.problem = problem;
    paintHead();
  };
  addEventListener("offline", () => setProblem(labels.lost));
  addEventListener("online", () => setProblem(""));
  player.addEventListener("sd-drawn", ring);
  player.addEventListener(
    "keydown",
    (event) => {
      if (view.following) event.stopPropagation();
    },
    true,
  ); // keys would move the replay away from the teacher's moment
  paintHead();
  listen();
}
