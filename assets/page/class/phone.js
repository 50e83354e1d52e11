/* A phone of the class: it shows what the teacher's page shows, or replays the run at its owner's pace; and it
 * votes. */

import { createButton, findParts } from "#page/race/html.js";
import { createQuestionTexts } from "#page/class/question.js";

const GLIDE = 200,
  FRAME = 33,
  FAR = 1500; // ms: to the next moment, between two drawings, and what is more than playing on
const VOTES = 200,
  AGAIN = 4000; // ms between two votes, and to the next try
const KEY = "specdec.phone";

/* `run.value` is the log of the player on this page, and `watched` is what the player does when that has grown. */
export function mount(element, props, player, run, watched) {
  const W = JSON.parse(props.words),
    quiz = JSON.parse(props.quiz),
    P = W.phone,
    { worded, bars } = createQuestionTexts(W, quiz),
    part = findParts(element);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches,
    me = name();
  const S = {
    following: true,
    run: "",
    log: "",
    shown: "",
    since: "",
    state: /** @type {any} */ (null),
    trouble: "",
    frame: 0,
    chosen: /** @type {any} */ (null),
    voting: false,
  };

  /* So that one phone has one vote: made here, and gone with the browser tab. */
  function name() {
    const made = Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) =>
      one.toString(16).padStart(2, "0"),
    ).join("");
    try {
      sessionStorage.setItem(KEY, sessionStorage.getItem(KEY) || made);
      return sessionStorage.getItem(KEY);
    } catch {
      return made;
    }
  }

  /* -- the class -- */

  function listen() {
    const events = new EventSource(`class/events?phone=${me}&since=${S.since}`);
    events.onmessage = ({ data, lastEventId }) => {
      S.since = lastEventId;
      S.trouble = "";
      take(JSON.parse(data));
    };
    events.onerror = () => {
      const gone = events.readyState === EventSource.CLOSED; // the app said no; else the browser tries again by itself
      S.trouble = gone ? P.full : P.lost;
      setTimeout(paintHead, gone ? 0 : 1500);
      if (gone) setTimeout(listen, AGAIN);
    };
  }

  function take(news) {
    const log = (news.part ? S.log : "") + news.log;
    Object.assign(S, { log, run: news.run, state: news.state });
    if (S.following || S.shown === S.run) bring();
    if (S.following) glide(S.state.cursor);
    paintHead();
    paintQuestion();
  }

  /* The player holds the run of the class, as far as it goes. */
  function bring() {
    if (!S.log) return;
    if (S.shown !== S.run || !S.log.startsWith(player.log())) player.load(S.log);
    else if (S.log !== player.log()) {
      run.value = S.log;
      watched.value();
    }
    S.shown = S.run;
    if (S.state.cursor && S.state.cursor.closed && !player.moment().closed) watched.ended();
  }

  /* Between two moments that a playing page tells, this one moves evenly. */
  function glide(cursor) {
    cancelAnimationFrame(S.frame);
    if (!cursor) return;
    const from = player.moment().t,
      ahead = cursor.t - from,
      began = performance.now();
    if (calm || !cursor.playing || ahead <= 0 || ahead * cursor.slow > FAR)
      return player.show(cursor);
    let drawn = 0;
    S.frame = requestAnimationFrame(function move(now) {
      const share = Math.min(1, Math.max(0, now - began) / GLIDE);
      if (now - drawn >= FRAME || share === 1) {
        drawn = now;
        player.show({ ...cursor, t: from + ahead * share });
      }
      if (share < 1) S.frame = requestAnimationFrame(move);
    });
  }

  function turn() {
    S.following = !S.following;
    document.body.toggleAttribute("data-following", S.following);
    cancelAnimationFrame(S.frame);
    if (S.following) {
      bring();
      if (S.state) player.show({ ...S.state.cursor });
    } else player.show({ t: player.moment().t });
    paintHead();
  }

  function paintHead() {
    part.state.textContent = S.trouble || (S.following ? P.following : P.own);
    part.state.classList.toggle("sd-wrong", Boolean(S.trouble));
    part.turn.textContent = S.following ? P.leave : P.follow;
  }

  /* -- questions -- */

  function paintQuestion() {
    const { question, answer, counts } = S.state;
    part.question.hidden = !question;
    if (!question) return;
    const vote =
      S.voting && S.chosen.question === question.id && !answer ? S.chosen.choice : S.state.vote;
    const told = worded(question);
    if (part.question.dataset.id !== question.id) {
      part.question.dataset.id = question.id;
      part.text.replaceChildren(...told.text);
      part.choices.replaceChildren(
        ...told.choices.map((label, i) => createButton(label, () => choose(question.id, i))),
      );
      scrollTo({ top: 0 });
    }
    part.choices.hidden = Boolean(answer);
    [...part.choices.children].forEach((node, i) =>
      node.setAttribute("aria-pressed", String(i === vote)),
    );
    part.bars.replaceChildren(...(answer ? bars(told.choices, counts, answer.right) : []));
    part.why.textContent = answer
      ? (vote == null ? "" : (vote === answer.right ? P.right : P.wrong) + " ") + told.why(answer)
      : vote == null
        ? ""
        : P.voted;
  }

  /* One vote at a time is on its way; the last choice counts. */
  async function choose(question, choice) {
    const busy = S.voting;
    Object.assign(S, { chosen: { question, choice }, voting: true });
    paintQuestion();
    if (busy) return;
    for (let sent = null; sent !== S.chosen;) {
      const vote = S.chosen,
        answer = await fetch("class/vote", {
          method: "POST",
          body: JSON.stringify({ phone: me, ...vote }),
        }).catch(() => null);
      if (answer && answer.status !== 429) sent = vote;
      await new Promise((resolve) => setTimeout(resolve, answer ? VOTES : AGAIN));
    }
    S.voting = false;
  }

  part.turn.onclick = turn;
  player.addEventListener(
    "keydown",
    (event) => {
      if (S.following) event.stopPropagation();
    },
    true,
  ); // keys move the time
  paintHead();
  listen();
}
