/* Writes the heading of a run: its source, models, machine and lanes, and the progress of each lane. */

import { speculativeOf, plainOf, peerOf, isOver, isAtEnd, isServed, BLOCK_VERIFICATION } from "#page/race/run.js";
import { willGoOn } from "#page/race/playback.js";
import { html, setProperty } from "#page/race/html.js";
import { countOfTokens, methodOf, pickText, makeVisible, fillText } from "#page/race/text.js";
import { describeSetup, isSmall } from "#page/race/setup.js";
import { noteOnScript } from "#page/race/why.js";
import { showCountMethod, describeServer, formatServerName } from "#page/race/server.js";

const PRECISIONS = ["bfloat16", "int8", "int7"]; // of the target; the heading names no others
const KERNELS = ["native", "wasm"]; // all other values of `kernels` mean torch

/** Says how fast the replay goes, and nothing at its end. A live text has a note on small models beside it.
 * `isFresh` says whether the run was made on this page. @param {PlayerTexts["meta"]} labels @param {View} view
 * @param {boolean} isFresh */
export function paceOf(labels, view, isFresh) {
  const isLive = isFresh && !isOver(view.run),
    note = isFresh && isSmall(view.run) ? labels.small : "";
  if (view.still && !view.playing && !isAtEnd(view)) return labels.still;
  if (willGoOn(view)) return labels.holding;
  if (isAtEnd(view) && !isLive) return note;
  if (view.slowdown !== 1) return fillText(labels.slow, { times: view.slowdown });
  return isLive ? note : labels.real_time;
}

/** @param {PlayerTexts} texts @param {HTMLElement} root @param {Parts} part @param {View} view */
export function createHeading(texts, root, part, view) {
  function paint() {
    const header = view.run.header,
      started = speculativeOf(view.run).started || /** @type {any} */ ({ drafter: "other", k: "K" }),
      models = header.models || {},
      machine = header.machine || {};
    const isFresh = header.source === "live" && view.returnedRun !== view.run,
      setup = describeSetup(texts, view.run),
      source = !isFresh ? "recorded" : isOver(view.run) ? "ended" : "live";
    setProperty(part.source, "textContent", texts.source[source]);
    setProperty(root.dataset, "source", isFresh ? "live" : source);
    root.toggleAttribute("data-over", isOver(view.run));
    setProperty(part.prompt, "textContent", makeVisible(header.prompt || ""));
    setProperty(part.promptline, "title", header.prompt || "");
    setProperty(part.pace, "textContent", paceOf(texts.meta, view, isFresh));
    setProperty(part.setup, "textContent", setup);
    setProperty(part.setup, "title", setup);
    setProperty(
      part.meta,
      "textContent",
      [
        setup,
        PRECISIONS.includes(models.dtype) ? texts.meta[models.dtype] : "",
        Number.isInteger(models.threads)
          ? fillText(texts.meta[KERNELS.includes(models.kernels) ? models.kernels : "torch"], { n: models.threads })
          : "",
        isUnpackedFile(models) ? texts.meta.unpacked : "",
        noteOnScript(texts, view.run),
      ]
        .filter(Boolean)
        .join(" · "),
    );
    showCountMethod(texts, part.counted, speculativeOf(view.run));
    root.toggleAttribute("data-lossy", started.lossless === false);
    root.toggleAttribute("data-alone", !plainOf(view.run));
    const peer = peerOf(view.run);
    root.toggleAttribute("data-peer", Boolean(peer));
    if (peer) setProperty(part.sub2, "textContent", peerText(peer, machine.transformers));
    setProperty(
      part.legend.discardedText,
      "data",
      texts.status[started.rule === BLOCK_VERIFICATION ? "late" : "discarded"],
    );
    part.swatches.hidden = isServed(view.run);
    const { odds } = texts.foot, // the foot begins with it, too
      isOdds = part.other.toggleAttribute("data-odds", part.foot.textContent.startsWith(odds));
    setProperty(
      part.sub1,
      "textContent",
      isServed(view.run)
        ? fillText(texts.server.plain, { server: formatServerName(models.plain_server || {}) })
        : isOdds
          ? odds
          : texts.lane.plain_sub,
    );
    if (isServed(view.run))
      setProperty(
        part.sub0,
        "textContent",
        describeServer(texts, models.server || { kind: started.server, version: "", k: started.k }),
      );
    else
      setProperty(
        part.sub0,
        "textContent",
        fillText(drafterSentence(started), {
          k: started.k,
          who: texts.names[started.drafter] || started.drafter,
        }) + (pickText(texts.rule, started.rule) ? "; " + pickText(texts.rule, started.rule) : ""),
      );
    for (const sub of [part.sub0, part.sub1, part.sub2]) setProperty(sub, "title", sub.textContent);
  }

  /* Picks the sentence on the drafter. `one` ("one guess per cycle") is not for trees, which make several. */
  const drafterSentence = (/** @type {Started} */ { k, drafter }) =>
    k === 0
      ? texts.lane.none
      : k === 1 && !methodOf(texts.methods, drafter).tree
        ? texts.lane.one
        : pickText(texts.drafter, drafter);

  function peerText(/** @type {Lane} */ lane, /** @type {string} */ version) {
    return fillText(pickText(texts.peer, lane.started ? lane.started.drafter : "other"), {
      k: lane.started ? lane.started.k : "K",
      version: version || "",
    });
  }

  function createTerm(/** @type {string} */ name, /** @type {string} */ label) {
    const node = html("button", { type: "button", class: "sd-term" }, label);
    node.definition = texts.define[name];
    return node;
  }

  function paintProgress(/** @type {Figures} */ figures) {
    [figures.speculative, figures.plain, figures.peer].forEach((lane, i) => {
      part["clock" + i].replaceChildren(html("b", {}, countOfTokens(texts, lane ? lane.written : 0)), html("span"));
    });
  }

  return { paint, createTerm, paintProgress };
}

/** Returns whether the model is SmolLM2, unpacked to bfloat16 from a file with 4 bits per weight.
 * @param {Record<string, any>} models */
const isUnpackedFile = ({ family, dtype }) => family === "smollm2" && dtype === "bfloat16";
