/* What a run is, and its figures so far: the line of the badge, and the figures below it. */

import { speculative, plain, peerOf, isOver, isServed } from "#page/race/run.js";
import { BLOCK, h, write } from "#page/race/kit.js";
import { fixed, size, methodOf, pick, visible, words } from "#page/race/text.js";
import { counted, lines, nameOf } from "#page/race/served.js";

const PRECISIONS = ["bfloat16", "int8", "int7"]; // each makes another target of the same weights

const isOurs = (family) => /^embedded(:|$)/.test(family || "embedded");
const nameOfModel = (pair) =>
  pair
    .split(" + ")[0]
    .split(/[\\/]/)
    .pop()
    .replace(/^smollm/, "SmolLM")
    .slice(0, 60);

export function figures(W, root, part, S) {
  function heading() {
    const head = S.run.header,
      started = speculative(S.run).started || { drafter: "other", k: "K" },
      models = head.models || {},
      machine = head.machine || {};
    const source = head.source === "live" ? "live" : "recorded";
    write(part.source, "textContent", W.source[source]);
    write(root.dataset, "source", source);
    const total = models.target && size(models.target.parameters),
      target =
        total && !isOurs(models.family)
          ? words(W.meta.named, { target: total, name: nameOfModel(models.family) })
          : total;
    const drafting =
        methodOf(W.methods, started.drafter).kind === "model" &&
        Object.hasOwn(models, started.drafter) &&
        models[started.drafter],
      draft = drafting && size(drafting.parameters);
    const pair =
      target && draft
        ? words(W.meta.pair, { target, draft })
        : target
          ? words(W.meta.target_only, { target })
          : "";
    write(part.prompt, "textContent", visible(head.prompt || ""));
    write(part.of, "title", head.prompt || "");
    const pace =
      S.slow === 1
        ? W.meta.real_time
        : words(
            source === "live" ? (isOver(S.run) ? W.meta.live : W.meta.running) : W.meta.recorded,
            { times: S.slow },
          );
    const server = (models.server || {}).model
      ? words(W.server.model, { model: models.server.model })
      : "";
    write(part.pace, "textContent", pace);
    write(
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
    counted(W, part.counted, speculative(S.run));
    root.toggleAttribute("data-lossy", started.lossless === false);
    root.toggleAttribute("data-alone", !plain(S.run));
    root.toggleAttribute("data-peer", Boolean(peerOf(S.run)));
    if (peerOf(S.run))
      write(part.sub2, "textContent", peerWords(peerOf(S.run), machine.transformers));
    write(part.legend.late, "data", W.status[started.rule === BLOCK ? "late" : "dis"]);
    part.swatches.hidden = isServed(S.run);
    write(
      part.sub1,
      "textContent",
      isServed(S.run)
        ? words(W.server.plain, { server: nameOf(models.plain_server || {}) })
        : W.lane.plain_sub,
    );
    if (isServed(S.run))
      write(
        part.sub0,
        "textContent",
        lines(W, models.server || { kind: started.server, version: "", k: started.k }),
      );
    else
      write(
        part.sub0,
        "textContent",
        words(draftedBy(started), {
          k: started.k,
          who: W.names[started.drafter] || started.drafter,
        }) + (pick(W.rule, started.rule) ? "; " + pick(W.rule, started.rule) : ""),
      );
    for (const sub of [part.sub0, part.sub1, part.sub2]) write(sub, "title", sub.textContent);
  }

  /* Only a tree tries several guesses where one is asked for. */
  const draftedBy = ({ k, drafter }) =>
    k === 0
      ? W.lane.none
      : k === 1 && !methodOf(W.methods, drafter).tree
        ? W.lane.one
        : pick(W.drafter, drafter);

  function peerWords(lane, version) {
    return words(pick(W.peer, lane.started ? lane.started.drafter : "other"), {
      k: lane.started ? lane.started.k : "K",
      version: version || "",
    });
  }

  function term(name, label) {
    const node = h("button", { type: "button", class: "sd-term" }, label);
    node.definition = W.define[name];
    return node;
  }

  /* What a lane has written, and how fast. */
  function paintClocks(F) {
    const clock = (at, more = "") => [
      h("b", {}, at.written === 1 ? W.lane.one_token : words(W.lane.clock, { tokens: at.written })),
      h("span", {}, at.rate ? " · " + fixed(at.rate, 0) + " " + W.figures.rate_unit + more : ""),
      h("span", {}, ""),
    ];
    part.clock0.replaceChildren(...clock(F.a));
    if (plain(S.run)) part.clock1.replaceChildren(...clock(F.b));
    const against = F.against ? " · " + words(W.figures.against, { times: fixed(F.against) }) : "";
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
        ? words(W.meta.cores, { n: machine.cores })
        : "";
  return cores && Number.isInteger(models.threads)
    ? cores + W.meta.join + words(W.meta[KERNELS[models.kernels] || "torch"], { n: models.threads })
    : cores;
}
