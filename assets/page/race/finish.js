// @ts-check
/* The end of a run: each lane as a bar of its time, a picture of both to share, and the text without chips. */

const { speculative, plain, figuresAt, serverOf, isBusy } = require("./run.js");
const { h, words, duration, fixed, visible, copied, answer, saved } = require("./kit.js");

const WIDTH = 1200,
  HEIGHT = 630; // what pages show of a link

/* What the end says: tokens, passes and time of both lanes, and who was faster. */
function result(W, run) {
  const A = speculative(run),
    B = plain(run),
    F = figuresAt(run, Infinity),
    n = F.a.written;
  const rows = [
    ["speculative", A, F.a],
    ["plain", B, F.b],
  ]
    .filter(([, lane]) => lane)
    .map(([name, lane, at]) => ({
      name: W.lane[name],
      kind: name,
      time: lane.end,
      passes: at.k,
      label: words(serverOf(lane) ? W.server.bar : W.finish.bar, {
        passes: at.k,
        time: duration(lane.end),
      }),
    }));
  const title = words(
    !B
      ? W.finish.title_alone
      : F.a.written === F.b.written && !serverOf(A)
        ? W.finish.title
        : serverOf(A)
          ? W.server.title
          : W.finish.title_unequal,
    { n, m: F.b.written, ks: F.a.k, kp: F.b.k },
  );
  return { title, rows, speedup: F.speedup, longest: Math.max(...rows.map((row) => row.time)) };
}

const textOf = (run) => {
  const lane = speculative(run);
  return (
    run.header.prompt +
    [lane.first, ...lane.cycles]
      .filter(Boolean)
      .map((one) => one.pieces.join(""))
      .join("")
  );
};

function finish(box, W, { share }) {
  const copy = async (button, text, word = W.finish.copied) =>
    answer(button, (await copied(text)) ? word : W.finish.refused);

  function draw(run) {
    const { title, rows, longest } = result(W, run);
    const bars = rows.map((row) =>
      h(
        "div",
        { class: "sd-finrow" },
        h("span", {}, row.name),
        h(
          "div",
          { class: "sd-fintrack" },
          h("i", { class: "sd-fin-" + row.kind, style: `width:${(100 * row.time) / longest}%` }),
          h("b", {}, row.label),
        ),
      ),
    );
    const button = (name, act) => {
      const node = h("button", { type: "button", class: "sd-link" }, W.finish[name]);
      node.onclick = () => act(node);
      return node;
    };
    box.replaceChildren(
      h(
        "div",
        { class: "sd-finish" },
        h("h2", {}, title),
        bars,
        h(
          "p",
          { class: "sd-finacts" },
          button("picture", () => picture(W, run)),
          share()
            ? button("link", async (node) => {
                const { link, whole } = await share()();
                copy(node, link, whole ? W.finish.copied : W.finish.copied_settings);
              })
            : null,
          button("text", (node) => copy(node, textOf(run))),
        ),
      ),
    );
  }

  return { draw };
}

/* The picture, in the palette of the page as it is now. */
function picture(W, run) {
  const { title, rows, speedup, longest } = result(W, run),
    canvas = document.createElement("canvas"),
    pen = canvas.getContext("2d");
  if (!pen) return;
  const styles = getComputedStyle(document.querySelector(".sd-player")),
    colour = (name) => styles.getPropertyValue("--sd-" + name).trim(),
    font = styles.fontFamily;
  Object.assign(canvas, { width: WIDTH, height: HEIGHT });
  const write = (text, x, y, size, weight, fill) => {
    pen.font = `${weight} ${size}px ${font}`;
    pen.fillStyle = fill;
    pen.fillText(text, x, y, WIDTH - x - 64);
  };
  pen.fillStyle = colour("page");
  pen.fillRect(0, 0, WIDTH, HEIGHT);
  write(W.finish.brand, 64, 88, 26, 600, colour("ink-2"));
  write(title, 64, 168, 46, 600, colour("ink"));
  rows.forEach((row, i) => {
    const y = 232 + i * 122;
    write(row.name, 64, y, 26, 600, colour("ink"));
    pen.fillStyle = colour("surface-2");
    pen.fillRect(64, y + 16, WIDTH - 128, 46);
    pen.fillStyle = colour(row.kind === "plain" ? "ink-2" : "acc-l");
    pen.fillRect(64, y + 16, ((WIDTH - 128) * row.time) / longest, 46);
    pen.textAlign = "right";
    pen.font = `400 24px ${font}`;
    pen.fillStyle = colour("ink-2");
    pen.fillText(row.label, WIDTH - 64, y);
    pen.textAlign = "left";
  });
  if (speedup)
    write(
      isBusy(run) ? W.say.busy : words(W.finish.measured, { times: fixed(speedup) }),
      64,
      500,
      34,
      600,
      colour("ink"),
    );
  write("“" + visible(run.header.prompt).slice(0, 80) + "”", 64, 560, 26, 400, colour("ink-2"));
  canvas.toBlob((blob) => {
    if (blob) saved(blob, run, ".png");
  });
}

module.exports = { finish, result, textOf };
