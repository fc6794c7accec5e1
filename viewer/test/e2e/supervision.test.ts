/** A question that never ends, one that takes all memory, and a process that is killed: the next question is answered. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BuildOptions, build } from "esbuild";
import { _electron, type ElectronApplication } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/main/database";
import { make, RUN_ID } from "../make";
import { VIEWER } from "./launch";

let folder: string;
let app: ElectronApplication;
let identity: string;
let path: string;

/** What supervised/main.ts has put into Electron's main process. */
interface Told {
  database: (path: string, limits: "brief" | "small") => Database;
  opened: Database;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-supervision-"));
  const common = {
    absWorkingDir: VIEWER,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node16",
    external: ["electron", "@photostructure/sqlite"],
  } satisfies BuildOptions;
  await build({ ...common, entryPoints: ["test/e2e/supervised/main.ts"], outfile: join(folder, "main.cjs") });
  await build({
    ...common,
    entryPoints: ["src/database/process.ts"],
    outfile: join(folder, "database.cjs"),
    plugins: [
      {
        name: "questions-of-the-test",
        setup: (building) =>
          building.onResolve({ filter: /^\.\/queries$/ }, ({ importer }) =>
            importer.endsWith("process.ts") ? { path: join(VIEWER, "test/e2e/supervised/queries.ts") } : null,
          ),
      },
    ],
  });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "supervised", main: "main.cjs" }));
  symlinkSync(join(VIEWER, "node_modules"), join(folder, "node_modules"));
  path = make(join(folder, "lab.sqlite"));
  app = await _electron.launch({
    chromiumSandbox: true,
    args: [folder, folder, `--user-data-dir=${join(folder, "data")}`],
    env: { ...process.env } as Record<string, string>,
  });
  identity = await app.evaluate(async (_electron, at) => {
    const told = globalThis as unknown as Told;
    told.opened = told.database(at, "brief");
    const answer = await told.opened.open(null);
    return answer.ok ? answer.value.identity : JSON.stringify(answer);
  }, path);
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (...names: string[]): Promise<unknown[]> =>
  app.evaluate(
    async (_electron, [of, all]) => {
      const { opened } = globalThis as unknown as { opened: Database };
      return Promise.all((all as string[]).map((name) => opened.query(of as string, name as never, {})));
    },
    [identity, names] as const,
  );

/** The database process: the one of Electron's that runs Node and has no window. */
const pid = (): Promise<number> =>
  app.evaluate(
    ({ app: electron }) =>
      electron
        .getAppMetrics()
        .find(({ serviceName, name }) => /node\.mojom\.NodeService|overlaylab database/.test(`${serviceName} ${name}`))
        ?.pid ?? -1,
  );

/** Once it is there: a new one is told of a moment after it answers. No signal may go to -1, which is everybody. */
const running = async (): Promise<number> => {
  let found = -1;
  await expect.poll(async () => (found = await pid()), { interval: 20, timeout: 15_000 }).toBeGreaterThan(0);
  return found;
};

const alive = (of: number): boolean => {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${of}/status`, "utf8"));
  } catch {
    return false;
  }
};

const RUNS = { ok: true, value: [expect.objectContaining({ run_id: RUN_ID })] };
const refused = (code: string) => ({ ok: false, problem: expect.objectContaining({ code }) });

test("a question that never ends is stopped with its process, and those that wait are answered", async () => {
  const before = await running();
  expect(await ask("endless", "runs", "runs")).toEqual([refused("too-slow"), RUNS, RUNS]);
  await expect.poll(pid, { timeout: 15_000 }).not.toBe(before);
  await expect.poll(() => alive(before), { timeout: 15_000 }).toBe(false);
});

test("a process that is stopped is ended too", async () => {
  const before = await running();
  process.kill(before, "SIGSTOP");
  expect(await ask("runs", "runs")).toEqual([refused("too-slow"), RUNS]);
  await expect.poll(() => alive(before), { timeout: 15_000 }).toBe(false);
});

test("a process killed between two questions is started anew, and nobody notices", async () => {
  // Often enough that a question meets the moment at which main has not been told of the end yet.
  for (let time = 0; time < 40; time++) {
    process.kill(await running(), "SIGKILL");
    expect(await ask("runs")).toEqual([RUNS]);
  }
});

test("one killed while it answers is given one more chance; then the file is blamed", async () => {
  const answers = ask("endless", "runs");
  const first = await running();
  process.kill(first, "SIGKILL");
  await expect.poll(pid, { timeout: 15_000 }).not.toBe(first);
  process.kill(await running(), "SIGKILL");
  expect(await answers).toEqual([refused("damaged"), RUNS]);
});

test("one that takes too much memory is ended", async () => {
  const answers = await app.evaluate(async (_electron, at) => {
    const small = (globalThis as unknown as Told).database(at, "small");
    const opened = await small.open(null);
    const identity = opened.ok ? opened.value.identity : "";
    const answered = [await small.query(identity, "greedy" as never, {}), await small.query(identity, "runs", {})];
    small.close();
    return answered;
  }, path);
  expect(answers).toEqual([refused("too-large"), RUNS]);
});

test("a question that SQL does not know is a problem, and the next one is answered", async () => {
  expect(await ask("crash", "toString", "nonsense", "runs")).toEqual([
    refused("unexpected"),
    refused("refused"),
    refused("refused"),
    RUNS,
  ]);
});

test("another file in its place is never read in its name", async () => {
  const answer = await app.evaluate((_electron) => {
    const { opened } = globalThis as unknown as { opened: Database };
    return opened.query("1:1", "runs", {});
  });
  expect(answer).toEqual(refused("replaced"));
  expect(await ask("runs")).toEqual([RUNS]);
});

test("closed, it answers whoever waits, ends its process and leaves no copy", async () => {
  const before = await running();
  const answers = await app.evaluate(async (_electron, of) => {
    const { opened } = globalThis as unknown as { opened: Database };
    const waiting = [opened.query(of, "endless" as never, {}), opened.query(of, "runs", {})];
    opened.close();
    return Promise.all([...waiting, opened.query(of, "runs", {})]);
  }, identity);
  expect(answers).toEqual([refused("gone"), refused("gone"), refused("gone")]);
  await expect.poll(() => alive(before), { timeout: 15_000 }).toBe(false);
  expect(readdirSync(folder).filter((name) => name.startsWith("copies"))).toEqual([]);
});
