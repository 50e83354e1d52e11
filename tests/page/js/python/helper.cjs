// A thread of the engine under node: what `worker.js` is to a browser.
const { parentPort, workerData } = require("node:worker_threads");
const path = require("node:path");
const { helps } = require(
  path.join(__dirname, "..", "..", "..", "..", "assets/page/engine/model.js"),
);
helps(workerData, () => parentPort.postMessage("ready"));
