/**
 * The page in a current Chromium, as the newest Electron will show it: from the build's own file, under the same policy,
 * with a bridge that hands its questions to the real viewer beside it. Nothing goes over a network.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Answer } from "../../src/contract/answers";
import type { Bridge } from "../../src/contract/channels";
import { DEFAULTS, type Settings } from "../../src/contract/settings";
import { launch, VIEWER, type Viewer } from "./launch";
import { choose, goTo, opened } from "./steps";

const PROGRAM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const SIZE = { width: 1280, height: 800 };

let viewer: Viewer;
let browser: Browser;
let page: Page;
const errors: string[] = [];
const asked: string[] = [];

beforeAll(async () => {
  if (!PROGRAM)
    throw new Error("Chromium is not installed: ./task test:viewer installs it, or apt-get install chromium");
  viewer = await launch({ files: [join(VIEWER, "dist", "demo.sqlite")], settings: { theme: "light" } });
  await viewer.page.setViewportSize(SIZE);
  await opened(viewer.page);
  browser = await chromium.launch({
    executablePath: PROGRAM,
    chromiumSandbox: true,
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  page = await browser.newPage({ viewport: SIZE });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => asked.push(request.url()));
  await page.exposeFunction("askViewer", askViewer);
  await page.addInitScript(bridgeOf, { ...DEFAULTS, theme: "light" } as Settings);
  await page.goto(pathToFileURL(join(VIEWER, "dist", "index.html")).href);
  await opened(page);
}, 120_000);
afterAll(async () => {
  await browser?.close();
  await viewer?.close();
});

/** The question, put by the real page to the real database process. */
const askViewer = (name: keyof Bridge, parameters: unknown[]): Promise<unknown> =>
  viewer.page.evaluate(
    ([which, given]) =>
      (window.overlaylab as unknown as Record<string, (...all: unknown[]) => unknown>)[which]?.(...given),
    [name, parameters] as const,
  );

/** Runs in the browser before the page does: what preload does in Electron, with settings of its own. */
function bridgeOf(settings: Settings): void {
  const ask = (window as unknown as { askViewer(name: string, parameters: unknown[]): Promise<never> }).askViewer;
  let kept = settings;
  const told = async (): Promise<Answer<Settings>> => ({ ok: true, value: kept });
  const own: Partial<Bridge> = {
    readSettings: told,
    writeSettings: (part) => {
      kept = { ...kept, ...part };
      return told();
    },
    on: () => () => {},
  };
  window.overlaylab = new Proxy(own as Bridge, {
    get: (mine, name) => mine[name as keyof Bridge] ?? ((...parameters: unknown[]) => ask(String(name), parameters)),
  });
}

/** For each plot how many points, lines and bars its picture has. */
const drawnIn = (shown: Page): Promise<{ title: string; points: number; lines: number; shapes: number }[]> =>
  shown.evaluate(() =>
    [...document.querySelectorAll("main .chart")].map((chart) => ({
      title: chart.querySelector("h3")?.textContent ?? "",
      points: chart.querySelectorAll(".plot path.point").length,
      lines: chart.querySelectorAll(".plot path.js-line").length,
      shapes: chart.querySelectorAll(".plot .shapelayer path").length,
    })),
  );

test.each([
  ["Compare", "quick · azure-a1"],
  ["Offered load", "skybet-2017"],
  ["Time", "quick · azure-a1"],
])("%s is drawn in Chromium as in Electron", async (view, run) => {
  for (const shown of [viewer.page, page]) {
    await goTo(shown, view);
    await choose(shown, "Run", run);
  }
  const plots = await drawnIn(page);
  expect(plots.length).toBeGreaterThan(0);
  for (const { title, points, lines } of plots) expect(points + lines, title).toBeGreaterThan(2);
  expect(plots).toEqual(await drawnIn(viewer.page));
  expect(errors).toEqual([]);
});

test("it keeps the policy of the build, and asks no network for anything", async () => {
  expect(await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content")).toContain(
    "script-src 'self'",
  );
  // Playwright reaches the page from outside; a script of the page's own is what the policy forbids.
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.head.append(script);
    return "ran" in window;
  });
  expect(ran).toBe(false);
  expect(errors.splice(0)).toEqual([expect.stringMatching(/Content Security Policy/)]);
  expect(asked.length).toBeGreaterThan(2);
  expect(asked.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
});
