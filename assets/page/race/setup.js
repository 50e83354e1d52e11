/* Names the models and the machine of a run; uses no DOM. */

import { isServed, startedOf } from "#page/race/run.js";
import { formatSize } from "#page/race/format.js";
import { fillText } from "#page/race/text.js";

const SMALL = 1e9; // parameters; the prose of a smaller target is poor

export const isSmall = (/** @type {Run} */ { header: { models } }) => models?.target?.parameters < SMALL;

/* Says in a few words which target, which drafter and which machine; leaves out what the run does not tell. */
export function describeSetup(/** @type {PlayerTexts} */ { meta, names, server }, /** @type {Run} */ run) {
  const { models = {}, machine = {} } = run.header,
    { drafter = "", k } = startedOf(run),
    family = models.family || "embedded";
  const nameModel = (/** @type {string} */ key, /** @type {string} */ name) => {
    const size = Object.hasOwn(models, key) && models[key] ? formatSize(models[key].parameters) : "";
    return size && name ? fillText(meta.named, { name, size }) : size || name;
  };
  if (isServed(run)) return models.server?.model ? fillText(server.model, { model: models.server.model }) : "";
  const target = family
    .split(" + ")[0]
    .replace(/.*[\\/]/, "")
    .replace(/^smollm/, "SmolLM")
    .slice(0, 60);
  return [
    models.target && nameModel("target", /^embedded(:|$)/.test(family) ? meta.target : target),
    k !== 0 && names[drafter] && nameModel(drafter, names[drafter]),
    /^cuda/.test(models.device) && machine.gpu
      ? machine.gpu
      : machine.cores && fillText(machine.cores === 1 ? meta.one_core : meta.cores, { n: machine.cores }),
  ]
    .filter(Boolean)
    .join(" · ");
}
