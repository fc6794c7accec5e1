/**
 * One database process for each open file. It answers one question at a time; one that takes longer than the limit, or more
 * memory, is ended with its process, and the next question starts another. The window never waits for it, nor falls with it.
 */
import { rmSync } from "node:fs";
import type { MessagePortMain, UtilityProcess } from "electron";
import { app, MessageChannelMain, utilityProcess } from "electron";
import { type Answer, problem } from "../contract/answers";
import type { FromProcess, Opened, ToProcess } from "../contract/process";
import type { QueryName } from "../contract/queries";

/** Seconds for an answer, and for opening a file, which may have to be copied; bytes of memory. */
export interface Limits {
  answer: number;
  open: number;
  memory: number;
}
export const LIMITS: Limits = { answer: 15, open: 60, memory: 1.5e9 };
const LOOK_AT_MEMORY_MS = 500;

interface Waiting {
  request: ToProcess;
  done: (answer: Answer<unknown>) => void;
  /** Processes that ended while they worked on it. */
  ended: number;
}

const CLOSED = problem("gone", "This file was closed.", "Open it again.");

export class Database {
  private child: UtilityProcess | null = null;
  private port: MessagePortMain | null = null;
  private queue: Waiting[] = [];
  private current: Waiting | null = null;
  private timers: NodeJS.Timeout[] = [];
  private closed = false;

  /** copies: a folder of this file's own, for copies that its process may have to make. */
  constructor(
    readonly path: string,
    private readonly script: string,
    private readonly copies: string,
    private readonly limits: Limits = LIMITS,
  ) {}

  /** Anew, even where it is open: everything is checked again. */
  open(identity: string | null): Promise<Answer<Opened>> {
    return this.ask({ kind: "open", path: this.path, identity }) as Promise<Answer<Opened>>;
  }

  query(
    identity: string,
    name: QueryName,
    parameters: Record<string, string | number | null>,
  ): Promise<Answer<unknown[]>> {
    return this.ask({ kind: "query", path: this.path, identity, name, parameters }) as Promise<Answer<unknown[]>>;
  }

  close(): void {
    this.closed = true;
    this.end();
    const waiting = [...(this.current ? [this.current] : []), ...this.queue];
    this.release();
    rmSync(this.copies, { recursive: true, force: true });
    this.queue = [];
    for (const { done } of waiting) done(CLOSED);
  }

  private ask(request: ToProcess): Promise<Answer<unknown>> {
    if (this.closed) return Promise.resolve(CLOSED);
    return new Promise((done) => {
      this.queue.push({ request, done, ended: 0 });
      this.next();
    });
  }

  private next(): void {
    if (this.current || this.closed) return;
    const waiting = this.queue.shift();
    if (!waiting) return;
    this.current = waiting;
    const port = this.port ?? this.start();
    const seconds = waiting.request.kind === "open" ? this.limits.open : this.limits.answer;
    this.timers = [
      setTimeout(() => this.tooSlow(seconds), seconds * 1000),
      setInterval(() => this.lookAtMemory(), LOOK_AT_MEMORY_MS),
    ];
    port.postMessage(waiting.request);
  }

  /**
   * Asked through a port of its own: the process' own postMessage takes Electron 22 down with it where the process was killed
   * a moment ago, and main has not been told yet.
   */
  private start(): MessagePortMain {
    const child = utilityProcess.fork(this.script, [this.copies], {
      serviceName: "overlaylab database",
      stdio: "inherit",
    });
    const { port1: port, port2 } = new MessageChannelMain();
    port.on("message", ({ data }: { data: FromProcess }) => {
      if (child === this.child) this.answer(data);
    });
    port.start();
    child.postMessage(null, [port2]);
    child.on("exit", (code) => {
      if (child === this.child) this.exited(code);
    });
    this.child = child;
    this.port = port;
    return port;
  }

  /** It ended by itself: a crash, or somebody's kill. A question is asked once more before the file is blamed. */
  private exited(code: number): void {
    this.forget();
    const { current } = this;
    if (!current) return;
    if (++current.ended < 2) {
      this.release();
      this.queue.unshift(current);
      this.next();
      return;
    }
    this.answer(
      problem(
        "damaged",
        "Reading this file ended the process that reads it, twice.",
        "The file may be damaged, or this machine out of memory. Try again, or a copy of the file; ./task results:show may say more.",
        `exit code ${code}`,
      ),
    );
  }

  private tooSlow(seconds: number): void {
    this.end();
    this.answer(
      problem(
        "too-slow",
        `No answer within ${seconds} s.`,
        "The question was stopped. Choose fewer runs, or try again when less runs on this machine.",
      ),
    );
  }

  private lookAtMemory(): void {
    const found = app.getAppMetrics().find(({ pid }) => pid === this.child?.pid);
    if (!found || found.memory.workingSetSize * 1024 <= this.limits.memory) return;
    this.end();
    this.answer(
      problem(
        "too-large",
        `The answer takes more than ${this.limits.memory / 1e9} GB of memory.`,
        "The question was stopped. Choose fewer runs, or a filter that leaves less.",
      ),
    );
  }

  /** SIGKILL: a process within one long step of SQLite, or a stopped one, hears of no other signal. */
  private end(): void {
    const { child } = this;
    this.forget();
    if (child?.pid === undefined) {
      child?.kill();
      return;
    }
    try {
      process.kill(child.pid, "SIGKILL");
    } catch {
      // It ended a moment ago.
    }
  }

  private forget(): void {
    this.port?.close();
    this.port = null;
    this.child = null;
  }

  private release(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers = [];
    this.current = null;
  }

  private answer(answer: Answer<unknown>): void {
    const { current } = this;
    if (!current) return;
    this.release();
    current.done(answer);
    this.next();
  }
}
