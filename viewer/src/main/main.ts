/** The app's life: one instance, one window, files from the command line. Its arguments: paths, and the switches below. */
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { app, type BrowserWindow, nativeTheme } from "electron";
import type { EventName, Events } from "../contract/channels";
import { LIMITS } from "./database";
import { Files } from "./files";
import { Home } from "./home";
import { setMenu } from "./menu";
import { Opener } from "./opener";
import { RecentFiles } from "./recent";
import { answerRequests } from "./requests";
import { resolveNothing } from "./security/offline";
import { SettingsFile } from "./settings";
import { openWindow } from "./window";

const HERE = __dirname;
const PAGE = pathToFileURL(join(HERE, "index.html")).href;
const FOLDER = PAGE.slice(0, PAGE.lastIndexOf("/") + 1);

let window: BrowserWindow | null = null;
const tell = <Name extends EventName>(name: Name, told: Events[Name]) => {
  if (window && !window.isDestroyed()) window.webContents.send(name, told);
};

/** Paths among the arguments, which another instance tells in another order; the app's own is one where it is not packaged. */
const paths = (argv: string[], folder: string): string[] =>
  argv
    .slice(1)
    .filter((word) => !word.startsWith("-"))
    .map((word) => resolve(folder, word))
    .filter((path) => app.isPackaged || path !== resolve(app.getAppPath()));

/** `--home=PATH`: this lab's results, a folder or a file. `--answer-within=SECONDS`: for slow disks. */
const switchValue = (name: string): string | null => app.commandLine.getSwitchValue(name) || null;

async function start(): Promise<void> {
  const folder = app.getPath("userData");
  const settings = new SettingsFile(join(folder, "settings.json"));
  const copies = join(folder, "copies");
  rmSync(copies, { recursive: true, force: true }); // of a viewer that was killed; there is one at a time
  const home = switchValue("home") ?? (app.isPackaged ? null : join(app.getAppPath(), "..", "results"));
  const files = new Files({
    script: join(HERE, "database.cjs"),
    copies,
    home: new Home(home, [join(HERE, "demo.sqlite")]),
    limits: { ...LIMITS, answer: Number(switchValue("answer-within") ?? LIMITS.answer) || LIMITS.answer },
    changed: (file) => tell("file:changed", file),
  });
  const opener = new Opener(files, new RecentFiles(join(folder, "recent.json")), HERE);
  window = openWindow(join(HERE, "preload.cjs"), PAGE, FOLDER, settings);
  const listening = once(window.webContents, "did-finish-load");
  const openAll = async (given: string[]) => {
    for (const path of given) {
      const opened = await opener.open(path);
      await listening;
      if (opened.ok) tell("file:opened", opened.value);
      else tell("file:failed", { path, problem: opened.problem });
    }
  };
  setMenu(tell);
  answerRequests({ window, page: PAGE, opener, settings });
  // Read while the page is loaded, and told when it listens.
  void openAll(paths(process.argv, process.cwd()));
  window.on("closed", () => files.closeAll());
  app.on("second-instance", (_event, argv, folder) => {
    void openAll(paths(argv, folder));
    window?.focus();
  });
  nativeTheme.on("updated", () => window?.setBackgroundColor(nativeTheme.shouldUseDarkColors ? "#16191d" : "#ffffff"));
}

resolveNothing(app.commandLine);
if (app.requestSingleInstanceLock()) {
  app.on("window-all-closed", () => app.quit());
  void app.whenReady().then(start);
} else {
  app.quit();
}
