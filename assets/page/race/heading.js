/* What a run is, and its figures so far: the line of the badge, and the figures below it. */

import {
  speculativeOf,
  plainOf,
  peerOf,
  isOver,
  isServed,
  BLOCK_VERIFICATION,
} from "#page/race/run.js";
import { html, setProperty } from "#page/race/html.js";
import { toFixed, formatSize } from "#page/race/format.js";
import { methodOf, pickText, makeVisible, fillText } from "#page/race/text.js";
import { showCountMethod, describeServer, formatServerName } from "#page/race/server.js";

const PRECISIONS = ["bfloat16", "int8", "int7"]; // each makes another target of the same weights

const isOurs = (family) => /^embedded(:|$)/.test(family || "embedded");
const nameOfModel = (pair) =>
  pair
    .split(" + ")[0]
    .split(/[\\/]/)
    .pop()
    .replace(/^smollm/, "SmolLM")
    .slice(0, 60);

export function createHeading(W, root, part, S) {
  function heading() {
    const head = S.run.header,
      started = speculativeOf(S.run).started || { drafter: "other", k: "K" },
      models = head.models || {},
      machine = head.machine || {};
    const source = head.source === "live" ? "live" : "recorded";
    setProperty(part.source, "textContent", W.source[source]);
    setProperty(root.dataset, "source", source);
    const total = models.target && formatSize(models.target.parameters),
      target =
        total && !isOurs(models.family)
          ? fillText(W.meta.named, { target: total, name: nameOfModel(models.family) })
          : total;
    const drafting =
        methodOf(W.methods, started.drafter).kind === "model" &&
        Object.hasOwn(models, started.drafter) &&
        models[started.drafter],
      draft = drafting && formatSize(drafting.parameters);
    const pair =
      target && draft
        ? fillText(W.meta.pair, { target, draft })
        : target
          ? fillText(W.meta.target_only, { target })
          : "";
    setProperty(part.prompt, "textContent", makeVisible(head.prompt || ""));
    setProperty(part.of, "title", head.prompt || "");
    const pace =
      S.slow === 1
        ? W.meta.real_time
        : fillText(
            source === "live" ? (isOver(S.run) ? W.meta.live : W.meta.running) : W.meta.recorded,
            { times: S.slow },
          );
    const server = (models.server || {}).model
      ? fillText(W.server.model, { model: models.server.model })
      : "";
    setProperty(part.pace, "textContent", pace);
    setProperty(
      part.meta,
      "textContent",
      [
        W.kind[head.kind || ""] || head.kind,
        server,
        pair,
        PRECISIONS.includes(models.dtype) ? W.meta[models.dtype] : "",
        placeOf(W, models, machine),
        isUnpacked(models) ? W.meta.unpacked : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    showCountMethod(W, part.counted, speculativeOf(S.run));
    root.toggleAttribute("data-lossy", started.lossless === false);
    root.toggleAttribute("data-alone", !plainOf(S.run));
    root.toggleAttribute("data-peer", Boolean(peerOf(S.run)));
    if (peerOf(S.run))
      setProperty(part.sub2, "textContent", peerWords(peerOf(S.run), machine.transformers));
    setProperty(
      part.legend.late,
      "data",
      W.status[started.rule === BLOCK_VERIFICATION ? "late" : "dis"],
    );
    part.swatches.hidden = isServed(S.run);
    setProperty(
      part.sub1,
      "textContent",
      isServed(S.run)
        ? fillText(W.server.plain, { server: formatServerName(models.plain_server || {}) })
        : W.lane.plain_sub,
    );
    if (isServed(S.run))
      setProperty(
        part.sub0,
        "textContent",
        describeServer(W, models.server || { kind: started.server, version: "", k: started.k }),
      );
    else
      setProperty(
        part.sub0,
        "textContent",
        fillText(draftedBy(started), {
          k: started.k,
          who: W.names[started.drafter] || started.drafter,
        }) + (pickText(W.rule, started.rule) ? "; " + pickText(W.rule, started.rule) : ""),
      );
    for (const sub of [part.sub0, part.sub1, part.sub2]) setProperty(sub, "title", sub.textContent);
  }

  /* Only a tree tries several guesses where one is asked for. */
  const draftedBy = ({ k, drafter }) =>
    k === 0
      ? W.lane.none
      : k === 1 && !methodOf(W.methods, drafter).tree
        ? W.lane.one
        : pickText(W.drafter, drafter);

  function peerWords(lane, version) {
    return fillText(pickText(W.peer, lane.started ? lane.started.drafter : "other"), {
      k: lane.started ? lane.started.k : "K",
      version: version || "",
    });
  }

  function term(name, label) {
    const node = html("button", { type: "button", class: "sd-term" }, label);
    node.definition = W.define[name];
    return node;
  }

  /* What a lane has written, and how fast. */
  function paintClocks(F) {
    const clock = (at, more = "") => [
      html(
        "b",
        {},
        at.written === 1 ? W.lane.one_token : fillText(W.lane.clock, { tokens: at.written }),
      ),
      html(
        "span",
        {},
        at.rate ? " · " + toFixed(at.rate, 0) + " " + W.figures.rate_unit + more : "",
      ),
      html("span", {}, ""),
    ];
    part.clock0.replaceChildren(...clock(F.a));
    if (plainOf(S.run)) part.clock1.replaceChildren(...clock(F.b));
    const against = F.against
      ? " · " + fillText(W.figures.against, { times: toFixed(F.against) })
      : "";
    if (F.peer) part.clock2.replaceChildren(...clock(F.peer, against));
  }

  return { heading, term, paintClocks };
}

/* SmolLM2 comes as a file of 4 bits a weight. */
const isUnpacked = ({ family, dtype }) => family === "smollm2" && dtype === "bfloat16";

const KERNELS = { native: "native", wasm: "wasm" }; // what else there is, torch computes

// Where it ran.
function placeOf(W, models, machine) {
  if (/^cuda/.test(models.device) && machine.gpu) return machine.gpu;
  const cores =
    machine.cores === 1
      ? W.meta.one_core
      : machine.cores
        ? fillText(W.meta.cores, { n: machine.cores })
        : "";
  return cores && Number.isInteger(models.threads)
    ? cores +
        W.meta.join +
        fillText(W.meta[KERNELS[models.kernels] || "torch"], { n: models.threads })
    : cores;
}
