/** The database process: opens one file read-only and answers named questions, one at a time. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Answer } from "../contract/answers";
import { problem, value } from "../contract/answers";
import type { Opened, ToProcess } from "../contract/process";
import { explained } from "./explained";
import { type Handle, open } from "./open";
import { QUERIES } from "./queries";

/** A run that ends waits 2 s for readers to let go of the file, to make it one plain file. */
const IDLE_MS = 200;

/** For copies; main makes one for each file, and takes it away. */
const FOLDER = process.argv[2] as string;

let handle: Handle | null = null;
let idle: NodeJS.Timeout | null = null;

/**
 * SQLite keeps a closed connection, with its locks, until its statements are gone too, and the module lets go of those only
 * when they are collected.
 */
function letGo(): void {
  handle?.close();
  handle = null;
  setImmediate(collect);
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function answer(request: ToProcess): Answer<unknown> {
  if (handle && (request.kind === "open" || handle.stale())) letGo();
  if (!handle) {
    const opened = open(request.path, FOLDER);
    if (!opened.ok) return opened;
    handle = opened.value;
  }
  if (request.identity !== null && handle.about.identity !== request.identity) {
    letGo();
    return problem("replaced", "Another file has taken the place of this one.", "Open the new one.");
  }
  if (request.kind === "open") return value<Opened>(handle.about);
  // Own properties only: a name comes from another process.
  if (!Object.hasOwn(QUERIES, request.name)) {
    return problem("refused", `There is no question named ${request.name}.`, "");
  }
  return handle.all(request.name, QUERIES[request.name], request.parameters);
}

// Main gives a port of our own with its first message, and asks through that alone (main/database.ts says why).
process.parentPort.once("message", ({ ports }) => {
  const [port] = ports;
  if (!port) throw new Error("main gave no port");
  port.on("message", ({ data }: { data: ToProcess }) => {
    if (idle) clearTimeout(idle);
    let answered: Answer<unknown>;
    try {
      answered = answer(data);
    } catch (error) {
      // What failed once may have left the connection in any state.
      letGo();
      answered = explained(error, data.path);
    }
    port.postMessage(answered);
    if (handle?.wal) idle = setTimeout(letGo, IDLE_MS);
  });
  port.start();
});
