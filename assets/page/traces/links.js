/* Writes the link to the settings of a run. */

import { startedOf } from "#page/race/run.js";
import { stopLines } from "#page/race/text.js";

/** Returns an address that fills in the settings of a run. Omits settings at their usual value, unless marked `main`.
 * A server's run has only a prompt and sampling settings. @param {Run} run @param {string} base
 * @param {Record<string, string>} rules @param {{ name: string, usual: any, main: boolean }[]} settings */
export function settingsLink(run, base, rules, settings) {
  const { header } = run,
    started = startedOf(run),
    params = /** @type {Partial<Params>} */ (started.params || {});
  const values = /** @type {Values} */ ({
    ...params,
    stop: stopLines(params.stop),
    prompt: header.prompt,
  });
  if (!started.server)
    Object.assign(values, {
      drafter: started.drafter,
      k: started.k,
      rule: rules[String(started.rule)],
      target: (header.models || {}).family,
      peer: run.names.length > 2,
    });
  const query = new URLSearchParams();
  for (const { name, usual, main } of settings) {
    const value = values[name];
    if (value == null) continue;
    if (main || value !== usual) query.set(name, value === true ? "1" : value);
  }
  return base + "?" + query;
}
