/**
 * What the viewer costs on one database: `node bench/bench.mts FILE ROUNDS` writes bench.json into the folder VIEWER_OUT.
 *
 * first_plot: seconds from starting Electron to the first plot on the screen, each round a start of its own.
 * filter: seconds from a choice in Compare to the new plot, all rounds.
 * time_filter: likewise from a choice of overlays in Time, which reads samples.
 * memory: bytes of all processes, shared pages in proportion (PSS), a plot shown and at rest.
 * idle_cpu: CPU seconds of all processes per second, over ten seconds in which nobody does anything.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { _electron, type Page } from "playwright-core";

const VIEWER = join(dirname(fileURLToPath(import.meta.url)), "..");
const CLOCK_TICKS = 100; // USER_HZ of every Linux that Electron runs on: sysconf(_SC_CLK_TCK)
const CHOICES = 8;
const IDLE_S = 10;

/** A plot is there when two frames have passed after it was drawn: ui/chart.tsx says so. */
const drawn = (page: Page): Promise<unknown> => page.waitForSelector(".plot[data-drawn]", { timeout: 120_000 });

/** The process and all that it started. */
function family(root: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      parents.set(Number(name), Number(fields(Number(name))[1]));
    } catch {
      // It ended while we looked.
    }
  }
  const found = [root];
  for (const each of found) for (const [pid, parent] of parents) if (parent === each) found.push(pid);
  return found;
}

/** Of /proc/PID/stat from the third on: state, parent, …; the second, a name in brackets, may hold spaces. */
const fields = (pid: number): string[] => {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
};

/** A process that may not be read is an error, not a zero. */
const sum = (pids: number[], of: (pid: number) => number): number => pids.reduce((total, pid) => total + of(pid), 0);

const memory = (pids: number[]): number =>
  sum(pids, (pid) => Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) * 1024);

const cpuSeconds = (pids: number[]): number =>
  sum(pids, (pid) => {
    const found = fields(pid);
    return (Number(found[11]) + Number(found[12])) / CLOCK_TICKS;
  });

/** Seconds from a choice to the new plot: "Ratio to the host" or "Absolute" in Compare, all overlays or one in Time. */
const untilDrawn = (page: Page, what: "switch" | "overlays"): Promise<number> =>
  page.evaluate(
    (kind) =>
      new Promise<number>((done) => {
        const choose = (): void => {
          if (kind === "switch") {
            const choices = [...document.querySelectorAll<HTMLButtonElement>("main .switch button")];
            const next = choices.find(
              (each) => /^(Ratio|Absolute)/.test(each.textContent ?? "") && each.ariaPressed === "false",
            );
            if (!next) throw new Error("Compare has no choice that could be changed");
            next.click();
            return;
          }
          const choice = document.querySelector("main details.choice");
          const all = /all \d+$/.test(choice?.querySelector("summary")?.textContent ?? "");
          const button = choice?.querySelectorAll<HTMLButtonElement>(".tools button")[all ? 1 : 0];
          if (!button) throw new Error("Time has no choice of overlays");
          button.click();
        };
        const before = performance.now();
        choose();
        // First the old plot has to go, then the new one to come.
        let gone = false;
        const look = () => {
          const there = document.querySelector("main .plot[data-drawn]") !== null;
          if (!there) gone = true;
          if ((gone && there) || performance.now() - before > 30_000) done((performance.now() - before) / 1000);
          else requestAnimationFrame(look);
        };
        look();
      }),
    what,
  );

async function round(file: string) {
  const userData = mkdtempSync(join(tmpdir(), "overlaylab-bench-"));
  writeFileSync(join(userData, "settings.json"), JSON.stringify({ view: "compare" }));
  const started = performance.now();
  const app = await _electron.launch({
    chromiumSandbox: true,
    args: [VIEWER, `--user-data-dir=${userData}`, file],
    timeout: 120_000,
  });
  try {
    const page = await app.firstWindow();
    await drawn(page);
    const firstPlot = (performance.now() - started) / 1000;
    const filter: number[] = [];
    for (let at = 0; at < CHOICES; at++) filter.push(await untilDrawn(page, "switch"));
    await page.click('nav button:text-is("Time")');
    await page.waitForSelector("main details.choice");
    await drawn(page);
    const timeFilter: number[] = [];
    for (let at = 0; at < CHOICES; at++) timeFilter.push(await untilDrawn(page, "overlays"));
    const root = app.process().pid as number;
    // What was made for the plots is collected some seconds later.
    await page.waitForTimeout(12_000);
    const pids = family(root);
    const before = cpuSeconds(pids);
    await page.waitForTimeout(IDLE_S * 1000);
    const idle = (cpuSeconds(pids) - before) / IDLE_S;
    return { firstPlot, filter, timeFilter, memory: memory(pids), idle, processes: pids.length };
  } finally {
    await app.close();
    rmSync(userData, { recursive: true, force: true });
  }
}

const [file, rounds = "3"] = process.argv.slice(2);
if (!file) throw new Error("usage: bench.mts FILE [ROUNDS]");
const found = [];
for (let at = 0; at < Number(rounds); at++) found.push(await round(file));
const measured = {
  first_plot: found.map((each) => each.firstPlot),
  filter: found.flatMap((each) => each.filter),
  time_filter: found.flatMap((each) => each.timeFilter),
  memory: found.map((each) => each.memory),
  idle_cpu: found.map((each) => each.idle),
  processes: found[0]?.processes,
};
writeFileSync(join(process.env.VIEWER_OUT ?? ".", "bench.json"), JSON.stringify(measured));
