// A thread of the engine under node: what `worker.js` is to a browser.
import { parentPort, workerData } from "node:worker_threads";
import { serveAsThread } from "#page/engine/model.js";

serveAsThread(workerData, () => parentPort.postMessage("ready"));
