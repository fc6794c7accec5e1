/** A window for attacks from within its page, and a server that they must not reach. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { make } from "../make";
import { launch, type Viewer } from "./launch";

let server: Server;
/** Somewhere that the page must never reach. */
export let elsewhere: string;
export const reached: string[] = [];
export let folder: string;
export let viewer: Viewer;

/** One window for the tests of a file; after each it is where it was, and nobody elsewhere has heard of it. */
export function attackedWindow(): void {
  beforeAll(async () => {
    server = createServer((request, response) => {
      reached.push(request.url ?? "");
      response.end("window.stolen = true");
    });
    server.on("upgrade", (request, socket) => {
      reached.push(request.url ?? "");
      socket.destroy();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    elsewhere = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    folder = mkdtempSync(join(tmpdir(), "overlaylab-security-"));
    viewer = await launch({
      files: [make(join(folder, "lab.sqlite"))],
      args: [`--home=${folder}`],
      // What the browser says of an attempt that it refused.
      expected: [
        /Content Security Policy|ERR_BLOCKED_BY|Not allowed to (load|navigate)|ERR_FAILED|was blocked|Permissions policy/i,
      ],
    });
    await viewer.page.waitForSelector("main table");
  });
  afterEach(() => {
    expect(reached).toEqual([]);
    expect(viewer.app.windows()).toHaveLength(1);
    expect(viewer.page.url()).toMatch(/^file:.*\/dist\/index\.html$/);
  });
  afterAll(async () => {
    await viewer.close();
    await new Promise((done) => server.close(done));
    rmSync(folder, { recursive: true, force: true });
  });
}

/**
 * Runs it in the page, outside of the debugger's own call, which would be let off the policy; and waits for what it promises.
 * What it throws is told as `refused: …`.
 */
export async function inPage(attempt: (elsewhere: string) => unknown): Promise<unknown> {
  return viewer.page.evaluate(
    ([source, given]) => {
      // biome-ignore lint/security/noGlobalEval: by the debugger, which may
      const run = globalThis.eval(`(${source})`) as (given: unknown) => unknown;
      return new Promise((done) => {
        setTimeout(async () => {
          try {
            done(await run(given));
          } catch (error) {
            done(`refused: ${(error as Error).name}`);
          }
        });
      });
    },
    [attempt.toString(), elsewhere] as const,
  );
}
