/* Writes the heading of a run: its source, models, machine and lanes, and the progress of each lane. */

import { speculativeOf, plainOf, peerOf, isOver, isAtEnd, isServed, BLOCK_VERIFICATION } from "#page/race/run.js";
import { willGoOn } from "#page/race/playback.js";
import { html, setProperty } from "#page/race/html.js";
import { formatSize } from "#page/race/format.js";
import { methodOf, pickText, makeVisible, fillText } from "#page/race/text.js";
import { noteOnScript } from "#page/race/why.js";
import { showCountMethod, describeServer, formatServerName } from "#page/race/server.js";

const PRECISIONS = ["bfloat16", "int8", "int7"]; // of the target; the heading names no others

const isBuiltIn = (/** @type {string} */ family) => /^embedded(:|$)/.test(family || "embedded");
const modelName = (/** @type {string} */ pair) =>
  pair
    .split(" + ")[0]
    .replace(/.*[\\/]/, "")
    .replace(/^smollm/, "SmolLM")
    .slice(0, 60);

/** @param {PlayerTexts} texts @param {HTMLElement} root @param {Parts} part @param {View} view */
export function createHeading(texts, root, part, view) {
  function paint() {
    const header = view.run.header,
      started = speculativeOf(view.run).started || /** @type {any} */ ({ drafter: "other", k: "K" }),
      models = header.models || {},
      machine = header.machine || {};
    const isFresh = header.source === "live" && view.returnedRun !== view.run,
      source = !isFresh ? "recorded" : isOver(view.run) ? "ended" : "live";
    setProperty(part.source, "textContent", texts.source[source]);
    setProperty(root.dataset, "source", isFresh ? "live" : source);
    root.toggleAttribute("data-over", isOver(view.run));
    const parameters = models.target && formatSize(models.target.parameters),
      target =
        parameters && !isBuiltIn(models.family)
          ? fillText(texts.meta.named, { target: parameters, name: modelName(models.family) })
          : parameters;
    const draftModel =
        methodOf(texts.methods, started.drafter).kind === "model" &&
        Object.hasOwn(models, started.drafter) &&
        models[started.drafter],
      draftSize = draftModel && formatSize(draftModel.parameters);
    const pair =
      target && draftSize
        ? fillText(texts.meta.pair, { target, draft: draftSize })
        : target
          ? fillText(texts.meta.target_only, { target })
          : "";
    setProperty(part.prompt, "textContent", makeVisible(header.prompt || ""));
    setProperty(part.promptline, "title", header.prompt || "");
    const paceText =
      view.still && !view.playing && !isAtEnd(view)
        ? texts.meta.still
        : willGoOn(view)
          ? texts.meta.holding
          : view.slowdown === 1
            ? texts.meta.real_time
            : fillText(texts.meta.slow, { times: view.slowdown });
    const server = (models.server || {}).model ? fillText(texts.server.model, { model: models.server.model }) : "";
    setProperty(part.pace, "textContent", paceText);
    setProperty(
      part.meta,
      "textContent",
      [
        server,
        pair,
        PRECISIONS.includes(models.dtype) ? texts.meta[models.dtype] : "",
        machineName(texts, models, machine),
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
    setProperty(
      part.sub1,
      "textContent",
      isServed(view.run)
        ? fillText(texts.server.plain, { server: formatServerName(models.plain_server || {}) })
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

  /* Writes how many tokens each lane has written; `controls.js` adds the time. */
  function paintProgress(/** @type {Figures} */ figures) {
    [figures.speculative, figures.plain, figures.peer].forEach((lane, i) => {
      const tokens = lane && lane.written;
      part["clock" + i].replaceChildren(
        html("b", {}, tokens === 1 ? texts.lane.one_token : fillText(texts.lane.clock, { tokens })),
        html("span"),
      );
    });
  }

  return { paint, createTerm, paintProgress };
}

/** Returns whether the model is SmolLM2, unpacked to bfloat16 from a file with 4 bits per weight.
 * @param {Record<string, any>} models */
const isUnpackedFile = ({ family, dtype }) => family === "smollm2" && dtype === "bfloat16";

const KERNELS = ["native", "wasm"]; // all other values of `kernels` mean torch

/** Names the machine that computed the run: its GPU, or its number of cores and threads. @param {PlayerTexts} texts
 * @param {Record<string, any>} models @param {Record<string, any>} machine */
function machineName(texts, models, machine) {
  if (/^cuda/.test(models.device) && machine.gpu) return machine.gpu;
  const cores =
    machine.cores === 1 ? texts.meta.one_core : machine.cores ? fillText(texts.meta.cores, { n: machine.cores }) : "";
  return cores && Number.isInteger(models.threads)
    ? cores +
        texts.meta.join +
        fillText(texts.meta[KERNELS.includes(models.kernels) ? models.kernels : "torch"], {
          n: models.threads,
          cores: machine.cores,
        })
    : cores;
}
