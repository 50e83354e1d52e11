/* The teacher's panel: it tells the class what the player on this page shows, asks, and shows the votes.
 *
 * The secret comes in the address and leaves it at once, for a projector shows that, too; it stays in this browser
 * tab. */

import { html, createButton, findParts } from "#page/race/html.js";
import { speculativeOf, isGreedy } from "#page/race/run.js";
import { depthOf, isCoinDecided } from "#page/race/cycle.js";
import { countCyclesBy } from "#page/race/measure.js";
import { fillText } from "#page/race/text.js";
import { quarterOf, createQuestionTexts } from "#page/class/question.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

const GAP = 200,
  AGAIN = 1000,
  LONGEST = 400000; // ms between two posts, and after one that failed; characters of one
const KEY = "specdec.teach";

/* The first screen's run is greedy: a class begins with one in which coins decide. */
async function begin(player, server) {
  if (!player.isFirst() || !isGreedy(player.run())) return;
  const log = await server.sampled_run().catch(() => "");
  if (log && player.isFirst()) player.load(log);
}

function teach(element, props, player, secret) {
  const W = JSON.parse(props.words),
    quiz = JSON.parse(props.quiz),
    T = W.teacher,
    { worded, bars } = createQuestionTexts(W, quiz),
    part = findParts(element);
  const some = (told, n, more) => fillText(n === 1 ? told.one : told.many, { n, ...more });
  const tell = (text, wrong = false) => {
    part.said.textContent = text;
    part.said.classList.toggle("sd-wrong", wrong);
  };
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  /* -- what the class is told -- */

  let run = "",
    sent = "",
    count = 0,
    pointed = "",
    busy = false,
    over = false;

  const post = (body) =>
    fetch("class/teach", {
      method: "POST",
      headers: { "X-Teach": secret },
      body: JSON.stringify(body),
    });

  /* Whatever of the run and its moment the class has not got; at once, then no more often than every `GAP`. */
  async function send() {
    if (busy || over) return;
    busy = true;
    try {
      for (let news = unsent(); news && !over; news = unsent()) {
        const answer = await post(news.body);
        if (answer.status === 403) return refuse();
        if (answer.status === 409)
          run = ""; // another app than the one that had the beginning
        else if (answer.ok) news.done();
        else tell(fillText(T.refused, { reason: await answer.text() }), true);
        await wait(answer.ok ? GAP : AGAIN);
      }
    } catch {
      tell(T.lost, true);
      await wait(AGAIN);
      setTimeout(send);
    } finally {
      busy = false;
    }
  }

  function unsent() {
    const log = player.log(),
      cursor = player.moment(),
      now = JSON.stringify(cursor),
      body = {};
    if (!player.run()) return null;
    if (!run || !log.startsWith(sent))
      Object.assign(body, { run: fresh(), part: 0, log: log.slice(0, LONGEST) });
    else if (log.length > sent.length)
      Object.assign(body, { run, part: count, log: log.slice(sent.length, sent.length + LONGEST) });
    else if (now === pointed) return null;
    const done = () => {
      pointed = now;
      if (body.run)
        [run, count, sent] = [body.run, body.part + 1, (body.part ? sent : "") + body.log];
      if (part.said.textContent === T.lost) tell("");
    };
    return { body: { ...body, cursor }, done };
  }

  const fresh = () =>
    Array.from(crypto.getRandomValues(new Uint8Array(8)), (one) =>
      one.toString(16).padStart(2, "0"),
    ).join("");

  /* -- questions -- */

  /** @type {any} */
  let asked = null; // { question, right, answer, at }

  /* A player in a tab that is not open draws nothing, and so does not say that it moved. */
  function stand(t) {
    player.show({ t });
    send();
  }

  const judged = (draft) => draft.state === "rej" || draft.state === "acc";

  /* The next cycle that judges a draft, one by a coin if there is any, and the moment before it does. */
  function coming() {
    const all = player.run() ? speculativeOf(player.run()).cycles : [],
      next = all
        .slice(countCyclesBy(all, player.moment().t))
        .filter((one) => one.check && one.drafts.some(judged)),
      cycle =
        next.find((one) => one.drafts.some((draft) => judged(draft) && isCoinDecided(draft))) ||
        next[0];
    if (cycle) stand(cycle.check.end - 0.001);
    else tell(T.no_cycle, true);
    return cycle;
  }

  /* One that a coin decides, else the one that is rejected, or the last of those that are kept. */
  function askKeep() {
    const cycle = coming(),
      all = cycle ? cycle.drafts.filter(judged) : [],
      draft = all.find(isCoinDecided) || all.find((one) => one.state === "rej") || all.pop();
    const [p, q] = draft ? [Math.min(1, draft.p), Math.min(1, draft.q)] : [];
    if (draft)
      ask(
        { kind: "keep", piece: draft.piece.slice(0, 200), choices: 4, p, q },
        { right: quarterOf(p, q) },
        cycle.endMs,
      );
  }

  function askCount() {
    const cycle = coming();
    if (cycle)
      ask({ kind: "count", choices: depthOf(cycle) + 1 }, { right: cycle.accepted }, cycle.endMs);
  }

  const askQuiz = (number) =>
    ask(
      { kind: "quiz", number, choices: quiz.list[number].choices.length },
      { right: quiz.list[number].answer },
      null,
    );

  async function ask(question, answer, at) {
    asked = { answer, at };
    part.invitation.open = false;
    await say({ ask: question });
  }

  async function reveal() {
    if (!asked) return;
    if (asked.at !== null) stand(asked.at);
    await say({ reveal: asked.answer });
  }

  async function say(body) {
    tell("");
    try {
      const answer = await post(body);
      if (answer.status === 403) refuse();
      else if (!answer.ok) tell(fillText(T.refused, { reason: await answer.text() }), true);
    } catch {
      tell(T.lost, true);
    }
  }

  /* -- what the class says -- */

  function heard({ joined, question, answer, counts }) {
    part.joined.textContent = some(T.joined, joined);
    part.question.hidden = !question;
    part.asks.hidden = Boolean(question);
    if (!question) return;
    const told = worded(question);
    part.text.replaceChildren(...told.text);
    part.bars.replaceChildren(...bars(told.choices, counts, answer ? answer.right : -1));
    part.why.textContent = answer ? told.why(answer) : "";
    part.votes.textContent = some(
      T.votes,
      counts.reduce((sum, n) => sum + n, 0),
    );
    part.reveal.hidden = Boolean(answer) || !asked; // after a reload the answer is not known here
  }

  function listen() {
    const events = new EventSource("class/events?teach=" + encodeURIComponent(secret));
    events.onmessage = ({ data }) => heard(JSON.parse(data));
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) setTimeout(invite, AGAIN);
    };
  }

  /* The app was started anew, with another secret. */
  function refuse() {
    over = true;
    sessionStorage.removeItem(KEY);
    part.asks.hidden = part.question.hidden = true;
    tell(T.wrong, true);
  }

  async function invite() {
    if (over) return;
    try {
      if ((await post({})).status === 403) return refuse();
      const { address, qr } = await (await fetch("class/join")).json();
      part.address.textContent = address.replace("http://", "");
      part.short.textContent = part.address.textContent;
      part.qr.innerHTML = qr; // the app's own drawing of its own address
      part.qr.firstElementChild.setAttribute("aria-hidden", "true");
    } catch {
      tell(T.lost, true);
      setTimeout(invite, AGAIN);
      return;
    }
    listen();
    send();
  }

  for (const name of ["title", "join", "how", "reveal", "done"]) part[name].textContent = T[name];
  const choice = html(
    "select",
    { "aria-label": T.ask_quiz },
    html("option", { value: "" }, T.ask_quiz),
    quiz.list.map((one, i) => html("option", { value: i }, `${i + 1}. ${one.ask}`)),
  );
  choice.onchange = () => {
    if (choice.value) askQuiz(+choice.value);
    choice.value = "";
  };
  part.asks.append(createButton(T.ask_keep, askKeep), createButton(T.ask_count, askCount), choice);
  part.reveal.onclick = reveal;
  part.done.onclick = () => say({ ask: null });
  part.panel.hidden = false;
  for (const moved of ["sd-drawn", "sd-run"]) player.addEventListener(moved, send);
  invite();
}

function secretOf() {
  const query = new URLSearchParams(location.search),
    told = query.get("teach");
  if (told) {
    query.delete("teach");
    sessionStorage.setItem(KEY, told);
    history.replaceState(
      history.state,
      "",
      location.pathname + (String(query) ? "?" + query : "") + location.hash,
    );
  }
  return told || sessionStorage.getItem(KEY);
}

export function mount(element, props, watch, trigger, server) {
  const secret = secretOf();
  if (!secret) return;
  whenPlayerReady((player) => {
    teach(element, props, player, secret);
    begin(player, server);
  });
}
