/** What main answers to the page: one function per channel of the contract. */

import type { BrowserWindow } from "electron";
import { app, clipboard, dialog, ipcMain, nativeTheme } from "electron";
import { type Answer, problem, value } from "../contract/answers";
import type { Channel, RequestAnswer, RequestParameters } from "../contract/channels";
import { saveExport } from "./export";
import type { Opener } from "./opener";
import { CHECKS } from "./security/parameters";
import { trusted } from "./security/senders";
import { ToldPaths } from "./security/told";
import type { SettingsFile } from "./settings";

type Handlers = {
  [Name in Channel]: (parameters: RequestParameters<Name>) => Promise<RequestAnswer<Name>> | RequestAnswer<Name>;
};

export interface Parts {
  window: BrowserWindow;
  page: string;
  opener: Opener;
  settings: SettingsFile;
}

export function answerRequests({ window, page, opener, settings }: Parts): void {
  const told = new ToldPaths();
  const handlers: Handlers = {
    "file:open": async ({ path }) => {
      if (path !== undefined && !told.knows(path))
        return problem(
          "refused",
          "The viewer's page asked for a file that nobody chose.",
          "Choose it with Open…, or drop it on the window.",
          path,
        );
      const chosen = path ?? (await choose(window));
      return chosen === null ? value(null) : opener.open(chosen);
    },
    "file:drop": ({ path }) => opener.open(path),
    "file:reopen": ({ id }) => opener.files.reopen(id),
    "file:close": ({ id }) => {
      opener.files.close(id);
      return value(null);
    },
    "file:list": () => value(opener.files.list()),
    "file:recent": () => value(told.tell(opener.recent())),
    "file:demo": () => opener.openDemo(),
    query: ({ file, name, parameters }) => opener.files.query(file, name, parameters),
    "settings:read": () => value(settings.value),
    "settings:write": (change) => {
      const kept = settings.change(change);
      // Else "system" would go on meaning what was chosen before: the page's prefers-color-scheme follows this.
      nativeTheme.themeSource = kept.theme;
      return value(kept);
    },
    "export:save": (file) => saveExport(window, file),
    "text:copy": ({ text }) => {
      clipboard.writeText(text);
      return value(null);
    },
    about: () =>
      value({
        version: __VERSION__,
        build: __BUILD__,
        electron: process.versions.electron,
        chromium: process.versions.chrome,
        sqlite: opener.files.sqlite ?? "unknown",
      }),
  };
  for (const [name, handler] of Object.entries(handlers)) {
    ipcMain.handle(name, async (event, parameters): Promise<Answer<unknown>> => {
      if (!trusted(event, page)) return problem("refused", "Refused: not from the viewer's own page.", "");
      if (!CHECKS[name as Channel](parameters))
        return problem(
          "refused",
          `Refused: not what ${name} may be told.`,
          "Report this: the viewer's page should not have asked it.",
        );
      try {
        return await (handler as (parameters: unknown) => Promise<Answer<unknown>>)(parameters);
      } catch (error) {
        return problem(
          "unexpected",
          "Something went wrong that the viewer did not expect.",
          "Try again; if it stays, report it.",
          String(error),
        );
      }
    });
  }
}

async function choose(window: BrowserWindow): Promise<string | null> {
  const { canceled, filePaths } = await dialog.showOpenDialog(window, {
    title: "Open a results database",
    defaultPath: app.getPath("documents"),
    properties: ["openFile"],
    filters: [
      { name: "Results databases", extensions: ["sqlite", "sqlite3", "db", "bak"] },
      { name: "All files", extensions: ["*"] },
    ],
  });
  return canceled ? null : (filePaths[0] ?? null);
}
