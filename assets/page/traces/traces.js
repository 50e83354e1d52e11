/* Keeps, passes on and opens runs. The run itself is the player's; files are checked by Python, not here. */

import { html, copyText, saveFile, findParts } from "#page/race/html.js";
import { isOver } from "#page/race/run.js";
import { fillTemplate, joinSentences } from "#page/race/text.js";
import { createFragment, carriesRun, readFragment } from "#page/traces/share.js";
import { settingsLink } from "#page/traces/links.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

/* ---- the buttons --------------------------------------------------------------------------------------------- */

function offer(element, props, server, player) {
  const W = JSON.parse(props.words),
    rules = JSON.parse(props.rules),
    listed = JSON.parse(props.settings),
    root = element.querySelector(".sd-traces");
  const part = findParts(root);
  const base = location.href.split(/[?#]/, 1)[0];
  player.share = share; // the end of a race offers it, too
  let asked = 0,
    about = player.run(),
    arriving = false;

  /* The link to the run; or, where that is too long for one or goes on still, to its settings alone. */
  async function share() {
    const run = player.run(),
      settings = settingsLink(run, base, rules, listed),
      fragment = isOver(run) ? await createFragment(player.log()) : "";
    return { link: settings + (fragment && "#" + fragment), whole: Boolean(fragment) };
  }

  /* -- what is told -- */

  function tell(answer) {
    part.said.textContent = answer.said || "";
    part.said.classList.toggle("sd-wrong", answer.wrong === true);
    const list = answer.list || [];
    part.list.hidden = !list.length;
    part.list.replaceChildren(...list.map((line) => html("li", {}, line)));
    part.share.hidden = true;
  }

  /* What was told of one run is not said of the next. */
  function another() {
    if (player.run() === about) return;
    about = player.run();
    asked++;
    tell({});
    if (carriesRun(location.hash) && !arriving)
      history.replaceState(history.state, "", location.pathname + location.search); // that was of the other
  }

  /* Asks Python; only the last question's answer counts. */
  async function ask(question, text, use) {
    const mine = ++asked;
    tell({ said: W.wait });
    try {
      const answer = await server[question](text);
      if (mine !== asked) return;
      if (use) use(answer);
      tell(answer);
    } catch {
      if (mine === asked) tell({ said: W.unreachable, wrong: true });
    }
  }

  const has = () => Boolean(player.run()) || (tell({ said: W.no_run, wrong: true }), false);
  const save = (text, type, extension) =>
    saveFile(new Blob([text], { type }), player.run(), extension);

  /* -- this run -- */

  function download() {
    if (!has()) return;
    save(player.log(), "application/x-ndjson", ".jsonl");
    tell({ said: W.saved });
  }

  function page() {
    if (has())
      ask(
        "make_page",
        [player.log(), base],
        (answer) => answer.page && save(answer.page, "text/html", ".html"),
      );
  }

  /* Shown as well as copied. */
  async function offer(text, done, not) {
    part.copy.value = text;
    part.share.hidden = false;
    const is = await copyText(text);
    part.said.textContent = is ? done : not;
    if (!is) part.copy.select();
  }

  async function link() {
    if (!has()) return;
    tell({});
    const { link, whole } = await share();
    part.copy.setAttribute("aria-label", W.link_label);
    offer(
      link,
      whole ? W.link_copied : W.link_settings_copied,
      whole ? W.link_shown : W.link_settings_shown,
    );
  }

  /* -- another one -- */

  function choose() {
    part.file.value = "";
    part.file.click();
  }

  async function take(chosen) {
    if (!chosen) return;
    if (chosen.size > props.limit)
      return tell({
        said: fillTemplate(W.too_large, { limit: props.limit / 1e6 }).join(""),
        wrong: true,
      });
    let text;
    try {
      text = await chosen.text();
    } catch {
      return tell({ said: W.unreadable, wrong: true });
    }
    open(text, chosen.name);
  }

  function open(text, name) {
    const run = player.run();
    if (run && run.header.source === "live" && !isOver(run))
      return tell({ said: W.running, wrong: true });
    ask("open_trace", text, (answer) => {
      if (!answer.log) return;
      player.load(answer.log);
      answer.said = joinSentences(fillTemplate(W.opened, { name }).join(""), answer.said);
    });
  }

  /* The run that the address brings. The engine checks it as it checks a file. */
  async function receive() {
    try {
      const answer = await server.open_trace(await readFragment(location.hash));
      if (!answer.log) throw new Error(answer.said);
      arriving = true;
      player.load(answer.log, true);
      arriving = false;
      tell(answer);
    } catch {
      // above the tabs, where a link is answered
      const line = /** @type {HTMLElement} */ (document.querySelector("#link-notice .sd-notice"));
      line.textContent = W.link.run;
      line.classList.add("sd-wrong");
    }
  }

  /* -- listening -- */

  const carriesFile = (event) =>
    event.dataTransfer && [...event.dataTransfer.types].includes("Files");

  /* A file may be dropped anywhere; the browser would leave the page for it. */
  function drag(event) {
    if (!carriesFile(event) || (event.type === "dragleave" && event.relatedTarget)) return;
    event.preventDefault();
    document.body.classList.toggle("sd-dropping", event.type === "dragover");
    if (event.type !== "drop") return;
    const lid = /** @type {HTMLElement | null} */ (
      document.querySelector('.sd-lid[aria-controls="deeds"][aria-expanded="false"]')
    );
    if (lid) lid.click(); // what is said of the file is said there
    take(event.dataTransfer.files[0]);
  }

  for (const [name, label] of Object.entries(W.labels)) part[name].textContent = label;
  part.download.onclick = download;
  part.page.onclick = page;
  part.link.onclick = link;
  part.audit.onclick = () => has() && ask("audit_trace", player.log());
  part.open.onclick = choose;
  part.file.onchange = () => take(part.file.files[0]);
  part.copy.onfocus = () => part.copy.select();
  player.addEventListener("sd-run", another);
  const arrive = () => carriesRun(location.hash) && receive();
  window.addEventListener("hashchange", arrive);
  arrive();
  for (const type of ["dragover", "dragleave", "drop"]) document.addEventListener(type, drag);
}

export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => offer(element, props, server, player));
