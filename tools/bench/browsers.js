/* A page that runs texts in the engine's worker, as a visitor's page does, and posts what it found: see browsers.py. */

const post = (told) => fetch("told", { method: "POST", body: JSON.stringify(told) });

async function measure() {
  const { rows, family, files } = await (await fetch("asked.json")).json(),
    worker = new Worker("worker.js", { type: "module" }),
    found = [];
  let number = 0,
    threads = 1;

  /* The events of one text in both lanes. */
  const once = (run) =>
    new Promise((done, failed) => {
      let log = "";
      worker.onmessage = ({ data }) => {
        log += data.lines || "";
        if (data.done)
          done(
            log
              .trim()
              .split("\n")
              .map((line) => JSON.parse(line)),
          );
        if (data.wrong) failed(new Error(data.wrong));
      };
      worker.postMessage({ run, number: ++number, files, base: location.href });
    });

  function figures([header, ...events]) {
    threads = header.models.threads;
    const spent = {},
      cycles = events.filter(
        ({ event, lane, cycle }) => event === "committed" && lane === "speculative" && cycle,
      );
    for (const { event, lane, at, prefill } of events)
      if (event === "finished") spent[lane] = at - prefill;
    const more = events.findLast(({ event }) => event === "finished").tokens - 1;
    return {
      tau: more / cycles.length,
      speed_up: spent.plain / spent.speculative,
      plain_per_s: more / spent.plain,
    };
  }

  for (const { kind, drafter, k, prompts, tokens, repeats } of rows) {
    const params = {
        temperature: 0,
        top_k: 0,
        top_p: 1,
        max_tokens: tokens,
        seed: 0,
        stop: [],
        ignore_end: true,
      },
      runs = [];
    for (let i = 0; i < repeats; i++)
      for (const prompt of prompts)
        runs.push(figures(await once({ prompt, family, drafter, k, params })));
    const middle = (name) => runs.map((run) => run[name]).sort((a, b) => a - b)[runs.length >> 1];
    found.push({
      kind,
      drafter,
      k,
      threads,
      ...Object.fromEntries(Object.keys(runs[0]).map((name) => [name, middle(name)])),
    });
  }
  return { rows: found, agent: navigator.userAgent };
}

measure()
  .catch((error) => ({ error: String(error) }))
  .then(post);
