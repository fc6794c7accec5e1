/**
 * The built viewer in the real Electron, with settings of its own. Whatever the page throws, or writes to its console as an
 * error or a warning, fails the test that drove it, unless the test said that it was to come.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { _electron, type ElectronApplication, type Page } from "playwright-core";

/** The folder of package.json, which Electron starts. */
export const VIEWER = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

export interface Options {
  /** Databases to open, as on the command line. */
  files?: string[];
  /** Further arguments of the app. */
  args?: string[];
  /** What settings.json holds at the start: view, theme, window, … */
  settings?: object;
  /** What the console may say, and the page may throw. */
  expected?: RegExp[];
  /** Where settings and recent files are kept, beyond the app's end; by default a folder that goes with it. */
  userData?: string;
  /** Another folder of package.json: a variant of the app. */
  viewer?: string;
}

export interface Viewer {
  app: ElectronApplication;
  page: Page;
  /** Where settings and recent files are kept. */
  userData: string;
  /** What went wrong so far and was not expected. */
  errors: string[];
  /** Ends the app, takes its settings away, and throws if anything went wrong. */
  close(): Promise<void>;
}

export async function launch({
  files = [],
  args = [],
  settings,
  expected = [],
  viewer = VIEWER,
  userData: kept,
}: Options = {}): Promise<Viewer> {
  if (!existsSync(join(viewer, "dist", "main.cjs"))) throw new Error(`${viewer}/dist is not built: node build.mjs`);
  const userData = kept ?? mkdtempSync(join(tmpdir(), "overlaylab-viewer-"));
  if (settings) writeFileSync(join(userData, "settings.json"), JSON.stringify(settings));
  const errors: string[] = [];
  const note = (words: string) => {
    if (!expected.some((pattern) => pattern.test(words))) errors.push(words);
  };
  // Playwright turns Chromium's sandbox off otherwise.
  const app = await _electron.launch({
    chromiumSandbox: true,
    args: [viewer, `--user-data-dir=${userData}`, ...args, ...files],
    env: { ...process.env } as Record<string, string>,
  });
  app.on("window", (opened) => listen(opened, note));
  const page = await app.firstWindow();
  listen(page, note);
  await page.waitForSelector(".app");
  return {
    app,
    page,
    userData,
    errors,
    async close() {
      await app.close();
      if (!kept) rmSync(userData, { recursive: true, force: true });
      if (errors.length) throw new Error(`the page went wrong:\n${errors.join("\n")}`);
    },
  };
}

/** Launches, drives and closes, whatever happens in between. */
export async function withViewer(options: Options, drive: (viewer: Viewer) => Promise<void>): Promise<void> {
  const viewer = await launch(options);
  try {
    await drive(viewer);
  } catch (error) {
    await viewer.close().catch((also) => console.error(String(also)));
    throw error;
  }
  await viewer.close();
}

const heard = new WeakSet<Page>();

function listen(page: Page, note: (words: string) => void): void {
  if (heard.has(page)) return;
  heard.add(page);
  page.on("pageerror", (error) => note(`thrown: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      note(`console ${message.type()}: ${message.text()}`);
  });
  page.on("crash", () => note("the page's process crashed"));
}
