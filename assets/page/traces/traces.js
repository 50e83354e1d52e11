/* Saves, shares and opens runs. The player holds the run; `server.open_trace` checks files. */

import { html, copyText, saveFile, findParts } from "#page/race/html.js";
import { isOver, carriesRun } from "#page/race/run.js";
import { fillTemplate, joinSentences } from "#page/race/text.js";
import { createFragment, readFragment } from "#page/traces/share.js";
import { settingsLink } from "#page/traces/links.js";
import { whenPlayerReady } from "#page/shared/arrival.js";

/** @param {HTMLElement} element @param {Props} props @param {Server} server @param {Player} player */
function mountTraces(element, props, server, player) {
  const texts = JSON.parse(props.words),
    rules = JSON.parse(props.rules),
    settingList = JSON.parse(props.settings),
    root = element.querySelector(".sd-traces");
  const part = findParts(root);
  const base = location.href.split(/[?#]/, 1)[0];
  player.share = share; // `race/finish.js` calls it after a race
  let askNumber = 0,
    answeredRun = player.run(), // the run that the shown answer is about
    isLoadingLink = false;

  async function share() {
    const run = player.run(),
      settings = settingsLink(run, base, rules, settingList),
      fragment = isOver(run) ? await createFragment(player.log()) : "";
    return { link: settings + (fragment && "#" + fragment), whole: Boolean(fragment) };
  }

  /* -- answers -- */

  function showAnswer(/** @type {any} */ answer) {
    part.said.textContent = answer.said || "";
    part.said.classList.toggle("sd-wrong", answer.wrong === true);
    const list = answer.list || [];
    part.list.hidden = !list.length;
    part.list.replaceChildren(...list.map((/** @type {string} */ line) => html("li", {}, line)));
    part.share.hidden = true;
  }

  function forgetOtherRun() {
    if (player.run() === answeredRun) return;
    answeredRun = player.run();
    askNumber++;
    showAnswer({});
    if (carriesRun(location.hash) && !isLoadingLink)
      history.replaceState(history.state, "", location.pathname + location.search); // the hash contains the other run
  }

  /** Calls a Python function. Ignores the answer if another call or another run came meanwhile. @param {string} name
   * @param {any} argument @param {(answer: any) => void} [use] */
  async function askPython(name, argument, use) {
    const number = ++askNumber;
    showAnswer({ said: texts.wait });
    try {
      const answer = await server[name](argument);
      if (number !== askNumber) return;
      if (use) use(answer);
      showAnswer(answer);
    } catch {
      if (number === askNumber) showAnswer({ said: texts.unreachable, wrong: true });
    }
  }

  const hasRun = () => Boolean(player.run()) || (showAnswer({ said: texts.no_run, wrong: true }), false);
  /** @param {string} text @param {string} type @param {string} extension */
  const save = (text, type, extension) => saveFile(new Blob([text], { type }), player.run(), extension);

  /* -- this run -- */

  function download() {
    if (!hasRun()) return;
    save(player.log(), "application/x-ndjson", ".jsonl");
    showAnswer({ said: texts.saved });
  }

  function makePage() {
    if (hasRun())
      askPython("make_page", [player.log(), base], (answer) => answer.page && save(answer.page, "text/html", ".html"));
  }

  /** @param {string} text @param {string} succeeded @param {string} failed */
  async function copyAndShow(text, succeeded, failed) {
    part.copy.value = text;
    part.share.hidden = false;
    const wasCopied = await copyText(text);
    part.said.textContent = wasCopied ? succeeded : failed;
    if (!wasCopied) part.copy.select();
  }

  async function shareLink() {
    if (!hasRun()) return;
    showAnswer({});
    const { link, whole } = await share();
    part.copy.setAttribute("aria-label", texts.link_label);
    copyAndShow(
      link,
      whole ? texts.link_copied : texts.link_settings_copied,
      whole ? texts.link_shown : texts.link_settings_shown,
    );
  }

  /* -- another run -- */

  function choose() {
    part.file.value = "";
    part.file.click();
  }

  async function takeFile(/** @type {File | undefined} */ chosen) {
    if (!chosen) return;
    if (chosen.size > props.limit)
      return showAnswer({
        said: fillTemplate(texts.too_large, { limit: props.limit / 1e6 }).join(""),
        wrong: true,
      });
    let text;
    try {
      text = await chosen.text();
    } catch {
      return showAnswer({ said: texts.unreadable, wrong: true });
    }
    openText(text, chosen.name);
  }

  function isRunLive() {
    const run = player.run();
    return run && run.header.source === "live" && !isOver(run);
  }

  function openText(/** @type {string} */ text, /** @type {string} */ name) {
    if (isRunLive()) return showAnswer({ said: texts.running, wrong: true });
    askPython("open_trace", text, (answer) => {
      if (!answer.log) return;
      player.load(answer.log);
      answer.said = joinSentences(fillTemplate(texts.opened, { name }).join(""), answer.said);
    });
  }

  async function receiveLink() {
    try {
      if (isRunLive()) throw new Error(texts.running);
      const answer = await server.open_trace(await readFragment(location.hash));
      if (!answer.log) throw new Error(answer.said);
      isLoadingLink = true;
      player.load(answer.log, true);
      isLoadingLink = false;
      showAnswer({ ...answer, said: joinSentences(answer.said, texts.link.short) });
    } catch {
      const line = /** @type {HTMLElement} */ (document.querySelector("#link-notice .sd-notice"));
      line.textContent = isRunLive() ? texts.running : texts.link.run;
      line.classList.add("sd-wrong");
      player.grow(player.log()); // shows the run that the page began with
    }
  }

  /* -- event handlers -- */

  /** @param {DragEvent} event */
  const carriesFile = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");

  /* Accepts a file dropped anywhere on the page. Without this, the browser would leave the page and open the file. */
  function handleDrag(/** @type {DragEvent} */ event) {
    if (!carriesFile(event) || (event.type === "dragleave" && event.relatedTarget)) return;
    event.preventDefault();
    document.body.classList.toggle("sd-dropping", event.type === "dragover");
    if (event.type !== "drop") return;
    const lid = /** @type {HTMLElement | null} */ (
      document.querySelector('.sd-lid[aria-controls="deeds"][aria-expanded="false"]')
    );
    if (lid) lid.click(); // opens the fold in which the answer appears
    takeFile(event.dataTransfer?.files[0]);
  }

  for (const [name, label] of Object.entries(texts.labels)) part[name].textContent = label;
  part.download.onclick = download;
  part.page.onclick = makePage;
  part.link.onclick = shareLink;
  part.audit.onclick = () => hasRun() && askPython("audit_trace", player.log());
  part.open.onclick = choose;
  part.file.onchange = () => takeFile(part.file.files[0]);
  part.copy.onfocus = () => part.copy.select();
  player.addEventListener("sd-run", forgetOtherRun);
  const onHash = () => carriesRun(location.hash) && receiveLink();
  window.addEventListener("hashchange", onHash);
  onHash();
  for (const type of /** @type {("drop" | "dragover" | "dragleave")[]} */ (["dragover", "dragleave", "drop"]))
    document.addEventListener(type, handleDrag);
}

/** @type {Mount} */
export const mount = (element, props, watch, trigger, server) =>
  whenPlayerReady((player) => mountTraces(element, props, server, player));
