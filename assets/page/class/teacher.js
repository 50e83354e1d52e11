/* Runs the teacher's panel: it sends the player's run to the class, asks questions and shows the votes.
 *
 * The teacher's secret arrives in the address. The panel moves it at once into the storage of this browser tab, because
 * a projector would show the address. */

import { html, createButton, findParts } from "#page/race/html.js";
import { speculativeOf, isGreedy } from "#page/race/run.js";
import { depthOf } from "#page/race/cycle.js";
import { countCyclesBy } from "#page/race/measure.js";
import { REJECTION_SAMPLING } from "#page/step/judge.js";
import { fillText } from "#page/race/text.js";
import { createQuestionTexts, ringAsked, cycleToAsk, draftToAsk, questionOn } from "#page/class/question.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

const POST_GAP_MS = 200,
  RETRY_MS = 1000,
  FOLD_MS = 15000, // the invitation folds so long after the last phone has joined
  MAX_POST = 400000; // a post has at most this many characters of the log
const BESIDE = ".sd-console, .sd-time, .sd-legend, .sd-why"; // a projector hides these during a question
const SECRET_KEY = "specdec.teach";

/* Replaces a greedy first run by a sampled one, in which random draws decide. */
async function loadSampledRun(/** @type {Player} */ player, /** @type {Server} */ server) {
  if (!player.isFirst() || !isGreedy(player.run())) return;
  const log = await server.sampled_run().catch(() => "");
  if (log && player.isFirst()) player.load(log);
}

/** @param {HTMLElement} element @param {Props} props @param {Player} player @param {string} secret */
function mountPanel(element, props, player, secret) {
  const texts = JSON.parse(props.words),
    quiz = JSON.parse(props.quiz),
    labels = texts.teacher,
    { describeQuestion, createBars } = createQuestionTexts(texts, quiz),
    part = findParts(element);
  /** @param {{ one: string, many: string }} countTexts @param {number} n */
  const countText = (countTexts, n) => fillText(n === 1 ? countTexts.one : countTexts.many, { n });
  const showNotice = (/** @type {string} */ text, wrong = false) => {
    part.notice.textContent = text;
    part.notice.classList.toggle("sd-wrong", wrong);
  };
  const waitMs = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

  /* -- sending the run to the class -- */

  let runName = "",
    sentLog = "",
    sentParts = 0,
    sentMoment = "",
    isSending = false,
    hasStopped = false;

  const post = (/** @type {object} */ body) =>
    fetch("class/teach", {
      method: "POST",
      headers: { "X-Teach": secret },
      body: JSON.stringify(body),
    });

  /* Sends the class the part of the log that it lacks, and the moment on show. */
  async function send() {
    if (isSending || hasStopped) return;
    isSending = true;
    try {
      for (let next = nextPost(); next && !hasStopped; next = nextPost()) {
        const response = await post(next.body);
        if (response.status === 403) return stopTeaching();
        if (response.status === 409)
          runName = ""; // the app was restarted and lacks the beginning of the run
        else if (response.ok) next.markSent();
        else showNotice(fillText(labels.refused, { reason: await response.text() }), true);
        await waitMs(response.ok ? POST_GAP_MS : RETRY_MS);
      }
    } catch {
      showNotice(labels.lost, true);
      await waitMs(RETRY_MS);
      setTimeout(send);
    } finally {
      isSending = false;
    }
  }

  function nextPost() {
    const log = player.log(),
      moment = player.moment(),
      momentText = JSON.stringify(moment),
      body = /** @type {any} */ ({});
    if (!player.run()) return null;
    if (!runName || !log.startsWith(sentLog))
      Object.assign(body, { run: createName(), part: 0, log: log.slice(0, MAX_POST) });
    else if (log.length > sentLog.length)
      Object.assign(body, {
        run: runName,
        part: sentParts,
        log: log.slice(sentLog.length, sentLog.length + MAX_POST),
      });
    else if (momentText === sentMoment) return null;
    const markSent = () => {
      sentMoment = momentText;
      if (body.run) [runName, sentParts, sentLog] = [body.run, body.part + 1, (body.part ? sentLog : "") + body.log];
      if (part.notice.textContent === labels.lost) showNotice("");
    };
    return { body: { ...body, cursor: moment }, markSent };
  }

  const createName = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

  document.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest(".sd-console")) part.invitation.open = false; // makes room
  });

  /* On a small projector the open invitation takes the place of examples, settings and time: see `teacher.css`. */
  const makeRoom = () => document.querySelector(".sd-race")?.toggleAttribute("data-inviting", part.invitation.open);
  part.invitation.addEventListener("toggle", makeRoom);

  /* -- questions -- */

  /** @type {any} */
  let openQuestion = null, // { answer, at }: the replay shows the answer at `at` ms; for the quiz, `at` is null
    shownQuestion = /** @type {any} */ (null);

  /* Moves the player and calls `send`, because a hidden player does not dispatch "sd-drawn", which would call it. */
  function moveTo(/** @type {number} */ timeMs) {
    player.show({ t: timeMs });
    send();
  }

  /* Moves to just before the next verdict that is worth a question. Returns its cycle. */
  function moveToNextVerdict() {
    const all = player.run() ? speculativeOf(player.run()).cycles : [],
      ahead = all.slice(countCyclesBy(all, player.moment().t)),
      cycle = cycleToAsk(ahead) || cycleToAsk(all); // at the run's end, goes back to its beginning
    if (cycle?.check) moveTo(cycle.check.end - 0.001);
    else showNotice(labels.no_cycle, true);
    return cycle;
  }

  function askKeep() {
    const { rule, server } = speculativeOf(player.run()).started || {};
    // the log of an older version names no rule; that version used rejection sampling
    if (server || (rule || REJECTION_SAMPLING) !== REJECTION_SAMPLING) return showNotice(labels.no_coin, true);
    const cycle = moveToNextVerdict(),
      draft = cycle && draftToAsk(cycle);
    if (cycle && draft) ask(...questionOn(speculativeOf(player.run()), cycle, draft), cycle.endMs);
    else showNotice(labels.no_cycle, true);
  }

  function askCount() {
    const cycle = moveToNextVerdict();
    if (cycle) ask({ kind: "count", choices: depthOf(cycle) + 1 }, { right: cycle.accepted }, cycle.endMs);
  }

  const askQuiz = (/** @type {number} */ number) =>
    ask({ kind: "quiz", number, choices: quiz.list[number].choices.length }, { right: quiz.list[number].answer }, null);

  async function ask(/** @type {any} */ question, /** @type {any} */ answer, /** @type {number | null} */ at) {
    openQuestion = { answer, at };
    part.invitation.open = false;
    scrollTo({ top: 0 }); // the question is above all else
    await postQuestion({ ask: question });
  }

  async function reveal() {
    if (!openQuestion) return;
    if (openQuestion.at !== null) moveTo(openQuestion.at);
    await postQuestion({ reveal: openQuestion.answer });
  }

  async function postQuestion(/** @type {object} */ body) {
    showNotice("");
    try {
      const response = await post(body);
      if (response.status === 403) stopTeaching();
      else if (!response.ok) showNotice(fillText(labels.refused, { reason: await response.text() }), true);
    } catch {
      showNotice(labels.lost, true);
    }
  }

  /* -- the answers of the class -- */

  let joinedPhones = 0,
    foldTimer = 0;

  /* Folds the invitation to its line once phones have joined and no more come; others may still scan its code. */
  function showJoined(/** @type {number} */ joined) {
    part.joined.textContent = countText(labels.joined, joined);
    if (joined > joinedPhones) {
      clearTimeout(foldTimer);
      foldTimer = setTimeout(() => (part.invitation.open = false), FOLD_MS);
    }
    joinedPhones = joined;
  }

  function showClass(/** @type {any} */ { joined, question, answer, counts }) {
    shownQuestion = question;
    ringAsked(player, question);
    showJoined(joined);
    part.question.hidden = !question;
    part.asks.hidden = Boolean(question);
    for (const node of document.querySelectorAll(BESIDE)) node.toggleAttribute("data-aside", Boolean(question));
    if (!question) return;
    const { text, choices, why } = describeQuestion(question),
      isOpen = !answer && openQuestion; // votes that the class can see would steer the others
    part.text.replaceChildren(...text);
    part.bars.replaceChildren(
      ...(isOpen
        ? choices.map((/** @type {string} */ label) => html("span", { class: "sd-cl-choice" }, label))
        : createBars(choices, counts, answer ? answer.right : -1)),
    );
    part.why.replaceChildren(...(answer ? why(answer) : []));
    part.votes.textContent = countText(
      labels.votes,
      counts.reduce((/** @type {number} */ sum, /** @type {number} */ n) => sum + n, 0),
    );
    part.reveal.hidden = !isOpen; // after a reload, this page no longer has the answer
  }

  function listen() {
    const events = new EventSource("class/events?teach=" + encodeURIComponent(secret));
    events.onmessage = ({ data }) => showClass(JSON.parse(data));
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) setTimeout(invite, RETRY_MS);
    };
  }

  /* Stops, because the app refused the secret; a restarted app has another one. */
  function stopTeaching() {
    hasStopped = true;
    sessionStorage.removeItem(SECRET_KEY);
    part.asks.hidden = part.question.hidden = true;
    showNotice(labels.wrong, true);
  }

  async function invite() {
    if (hasStopped) return;
    try {
      if ((await post({})).status === 403) return stopTeaching();
      const { address, qr } = await (await fetch("class/join")).json();
      part.address.textContent = address.replace("http://", "");
      part.summaryaddress.textContent = part.address.textContent;
      part.qr.innerHTML = qr; // safe as markup, because the app itself drew it
      part.qr.firstElementChild.setAttribute("aria-hidden", "true");
    } catch {
      showNotice(labels.lost, true);
      setTimeout(invite, RETRY_MS);
      return;
    }
    listen();
    send();
  }

  for (const name of ["title", "join", "how", "reveal", "done"]) part[name].textContent = labels[name];
  const choice = html(
    "select",
    { "aria-label": labels.ask_quiz },
    html("option", { value: "" }, labels.ask_quiz),
    quiz.list.map((/** @type {{ ask: string }} */ { ask }, /** @type {number} */ i) =>
      html("option", { value: i }, `${i + 1}. ${ask}`),
    ),
  );
  choice.onchange = () => {
    if (choice.value) askQuiz(+choice.value);
    choice.value = "";
  };
  part.asks.append(createButton(labels.ask_keep, askKeep), createButton(labels.ask_count, askCount), choice);
  part.reveal.onclick = reveal;
  part.done.onclick = () => postQuestion({ ask: null });
  part.panel.hidden = false;
  makeRoom();
  player.dataset.led = "";
  for (const event of ["sd-drawn", "sd-run"]) player.addEventListener(event, send);
  player.addEventListener("sd-drawn", () => ringAsked(player, shownQuestion));
  part.tools.append(...document.querySelectorAll(".sd-head :is(nav, button)")); // the head itself is hidden
  invite();
}

function takeSecret() {
  const query = new URLSearchParams(location.search),
    newSecret = query.get("teach");
  if (newSecret) {
    query.delete("teach");
    sessionStorage.setItem(SECRET_KEY, newSecret);
    history.replaceState(history.state, "", location.pathname + (String(query) ? "?" + query : "") + location.hash);
  }
  return newSecret || sessionStorage.getItem(SECRET_KEY);
}

/** @param {HTMLElement} element @param {Props} props @param {Watch} watch @param {Trigger} trigger
 * @param {Server} server */
export function mount(element, props, watch, trigger, server) {
  const secret = takeSecret();
  if (!secret) return;
  whenPlayerReady((player) => {
    mountPanel(element, props, player, secret);
    loadSampledRun(player, server);
  });
}
