// @ts-check
/* Many texts at once: what that makes of speculation by kind of load, throughput against the speed of each text, and both
 * as the bench measured them with the embedded pair. */

const { text, line, words, sentences, fixed, niceStep, widthOf } = require("../race/player.js");
const {
  machineOf,
  modelOf,
  batchSpeedup,
  batchRates,
  crossings,
  memoryBytes,
} = require("./formulas.js");
const { times, byId, range, path, dot } = require("./axes.js");

/* Target, context, and the tokens that the draft reads. */
const LOADS = {
    short: ["llama8", 512, 512],
    long: ["llama8", 32768, 32768],
    window: ["llama8", 32768, 512],
    experts: ["moe30", 512, 512],
  },
  DRAFT = "llama1";
const rate = (value) =>
  value && value < 10 ? fixed(value, 1) : Math.round(value).toLocaleString("en");

function batchView(
  W,
  part,
  S,
  { frame, speedAxis },
  { machines, models, batches: { points, machine: ours, measured } },
) {
  const V = W.many,
    model = (id) => modelOf(byId(models, id));

  function paint() {
    const machine = machineOf(byId(machines, S.machine)),
      pair = [model(S.target), model(S.draft)];
    paintBatches(machine, ...pair);
    paintTrade(machine, ...pair);
    if (points) paintOurs();
  }

  /* Lines of speed-ups over batches up to 2 to the power `largest`; their names at the right, moved apart. */
  function speedups(name, height, largest, lines) {
    const A = frame(name, height, W.batches.aria, {
        bottom: 40,
        right: 18 + Math.max(...lines.map((one) => widthOf(one.name))),
      }),
      { g } = A;
    const y = speedAxis(
        A,
        Math.max(2, ...lines.flatMap(({ line }) => line.map(([, gain]) => gain))) * 1.1,
      ),
      x = (batch) => A.left + (Math.log2(batch) / largest) * A.wide;
    for (let power = 0; power <= largest; power += largest > 6 ? 2 : 1)
      g.append(text(x(2 ** power), A.floor + 18, String(2 ** power), "", "middle"));
    g.append(text(A.left + A.wide / 2, A.height - 4, W.batches.axis, "", "middle"));
    let last = 0;
    for (const { name, line, look, marks } of lines) {
      const at = line.map(([batch, gain]) => [x(batch), y(gain)]);
      g.append(
        path(at, look),
        ...at
          .filter((_, i) => marks(i))
          .map(([left, top]) =>
            dot(left, top, 3.5, look === "sd-line-a" ? "sd-dot-a" : "sd-dot-b"),
          ),
      );
    }
    for (const [top, name] of lines
      .map(({ name, line }) => [y(line[line.length - 1][1]), name])
      .sort(([one], [other]) => one - other))
      if (name) g.append(text(A.left + A.wide + 8, (last = Math.max(last + 14, top)) + 4, name));
    part[name].replaceChildren(g);
    return { A, x, y };
  }

  function paintBatches(machine, ...pair) {
    const at = range(0, 72).map((i) => 2 ** (i / 8)),
      curve = (target, draft, context, read) =>
        at.map((batch) => [
          batch,
          batchSpeedup(machine, target, draft, S.bits, S.alpha, S.k, batch, context, read),
        ]);
    const lines = Object.entries(LOADS).map(([load, [id, context, read]]) => {
      const full = at.findIndex(
        (batch) =>
          memoryBytes(model(id), model(DRAFT), S.bits, batch, context).reduce(
            (sum, one) => sum + one,
          ) > machine.memory,
      );
      return {
        name: V.loads[load],
        look: "sd-th-bend sd-th-" + load,
        line: curve(model(id), model(DRAFT), context, read),
        marks: (i) => i === full,
      };
    });
    const own = curve(...pair, S.context),
      gains = own.map(([, gain]) => gain),
      { A, x, y } = speedups("batches", 300, 9, [
        ...lines,
        { name: "", look: "sd-line-a", line: own, marks: () => false },
      ]),
      { g } = A;
    for (const i of crossings(gains)) {
      // below the line and beside the turn: the curve is on the other side
      const turn = x(at[i]),
        loses = gains[i] < 1,
        left = loses ? turn > A.left + 200 : turn > A.left + A.wide - 150;
      g.append(
        line(turn, y(1), turn, A.floor, "sd-dots"),
        text(
          turn + (left ? -6 : 6),
          y(1) + 18,
          words(loses ? W.batches.loses : W.batches.wins, { n: Math.ceil(at[i]) }),
          "sd-b",
          left ? "end" : "start",
        ),
      );
    }
    const now = gains[8 * Math.log2(S.batch)],
      right = S.batch > 64;
    g.append(
      dot(x(S.batch), y(now), 6.5, "sd-th-you"),
      text(
        x(S.batch) + (right ? -12 : 12),
        y(now) - 10,
        times(now),
        "sd-th-mine sd-b",
        right ? "end" : "start",
      ),
    );
    part.batchsay.textContent = sentences(
      lines.map(({ name, line }) =>
        words(V.gain, { name, n: 512, one: times(line[0][1]), all: times(line[72][1]) }),
      ),
    );
  }

  /* Lanes of [tokens/s of each text, batch]; the first ones' batches are written beside them, and `mark` joins two points. */
  function rates(name, lanes, mark) {
    const A = frame(name, 300, W.labels.tradetitle, { left: 52, bottom: 40, top: 24, right: 20 }),
      { g } = A,
      all = lanes.flatMap(([lane]) => lane),
      sums = all.map(([each, batch]) => each * batch);
    const most = Math.max(...all.map(([each]) => each)) * 1.06,
      low = Math.min(...sums) / 1.3,
      high = Math.max(...sums) * 1.3,
      step = niceStep(most, 5);
    const x = (each) => A.left + (each / most) * A.wide,
      y = (sum) => A.floor - (Math.log(sum / low) / Math.log(high / low)) * A.tall,
      place = ([each, batch]) => [x(each), y(each * batch)];
    for (let sum = 10 ** Math.floor(Math.log10(low)); sum < high; sum *= high / low < 40 ? 2 : 10)
      if (sum > low)
        g.append(
          line(A.left, y(sum), A.left + A.wide, y(sum), "sd-grid"),
          text(A.left - 8, y(sum) + 4, rate(sum), "", "end"),
        );
    for (let each = 0; each <= most; each += step)
      g.append(text(x(each), A.floor + 18, step < 1 ? fixed(each, 1) : rate(each), "", "middle"));
    g.append(
      line(A.left, A.floor, A.left + A.wide, A.floor, "sd-ax"),
      text(A.left + A.wide / 2, A.height - 4, V.each, "", "middle"),
      text(0, 11, V.all),
    );
    for (const [lane, look, cls] of lanes)
      g.append(path(lane.map(place), look), ...lane.map((point) => dot(...place(point), 3.5, cls)));
    for (const point of lanes[0][0])
      if (Math.log2(point[1]) % 3 === 0)
        g.append(text(x(point[0]) - 9, place(point)[1] + 5, String(point[1]), "sd-b", "end"));
    if (mark)
      g.append(
        line(...place(mark[0]), ...place(mark[1]), "sd-th-drop"),
        dot(...place(mark[0]), 5, "sd-th-real"),
        dot(...place(mark[1]), 6.5, "sd-th-you"),
      );
    part[name].replaceChildren(g);
  }

  function paintTrade(machine, target, draft) {
    const at = (batch) =>
        batchRates(machine, target, draft, S.bits, S.alpha, S.k, batch, S.context),
      lane = (which) => range(0, 9).map((i) => [at(2 ** i)[which], 2 ** i]),
      now = at(S.batch);
    rates(
      "trade",
      [
        [lane(0), "sd-line-b", "sd-dot-b"],
        [lane(1), "sd-line-a", "sd-dot-a"],
      ],
      now.map((each) => [each, S.batch]),
    );
    let served = 0,
      beyond = 64 * S.batch; // the texts that speculation serves as fast as plain decoding serves these
    while (beyond - served > 1) {
      const middle = (served + beyond) >> 1;
      if (at(middle)[1] >= now[0] * (1 - 1e-9)) served = middle;
      else beyond = middle;
    }
    part.tradesay.textContent = words(V.say, {
      n: S.batch,
      each: rate(now[0]),
      all: rate(now[0] * S.batch),
      faster: rate(now[1]),
      sum: rate(now[1] * S.batch),
      served,
    });
  }

  function paintOurs() {
    const [contexts, ks, sizes] = ["context", "k", "batch"].map((name) => [
        ...new Set(points.map((point) => point[name])),
      ]),
      n = Math.max(...sizes),
      near = [...ks].sort((one, other) => Math.abs(one - S.k) - Math.abs(other - S.k))[0];
    const look = (context) => (context === contexts[0] ? "sd-line-a" : "sd-line-b"),
      of = (context, k) => points.filter((point) => point.context === context && point.k === k);
    const lines = ks.flatMap((k) =>
      contexts.map((context) => ({
        k,
        name: words(V.line, { context, k }),
        look: k === near ? look(context) : "sd-th-bend",
        marks: () => true,
        line: of(context, k).map((point) => [point.batch, point.measured_speedup]),
      })),
    );
    speedups("ours", 300, Math.log2(n), lines);
    const gains = lines
      .filter(({ k }) => k === near)
      .map(({ name, line }) =>
        words(V.gain, { name, n, one: times(line[0][1]), all: times(line[line.length - 1][1]) }),
      );
    part.ourssay.textContent = sentences(
      words(V.where, { cpu: ours.cpu, cores: ours.cores, date: measured.slice(0, 10) }),
      gains,
      points.every((point) => point.identical_to_plain) ? V.identical : V.differs,
    );
    const lane = (context, name) =>
      of(context, near).map((point) => [point[name] / point.batch, point.batch]);
    rates(
      "ourtrade",
      contexts.flatMap((context) => [
        [lane(context, "plain_tokens_per_second"), look(context) + " sd-th-beyond", "sd-dot-b"],
        [lane(context, "tokens_per_second"), look(context), "sd-dot-a"],
      ]),
    );
  }

  part.oursfigure.hidden = part.ourtradefigure.hidden = !points;
  return { paint };
}

module.exports = { batchView };
