// A thread of the engine under node: what `worker.js` is to a browser.
import { parentPort, workerData } from "node:worker_threads";
import { helps } from "#page/engine/model.js";

helps(workerData, () => parentPort.postMessage("ready"));
