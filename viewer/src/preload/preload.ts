/** The only way from the page to the rest: named functions over the channels of the contract. */
import { contextBridge, ipcRenderer, webUtils } from "electron";
import type { Bridge, Channel, EventName, RequestAnswer, RequestParameters } from "../contract/channels";

const ask = <Name extends Channel>(name: Name, parameters: RequestParameters<Name>): Promise<RequestAnswer<Name>> =>
  ipcRenderer.invoke(name, parameters);

const EVENTS: ReadonlySet<EventName> = new Set<EventName>(["file:opened", "file:changed", "file:failed", "command"]);

/**
 * Where the person's file lies; empty for one that a script made, and an exception for what is no file. Electron 32 took
 * `File.path` away and gave `webUtils` instead; the fallback runtime has only the former, an accessor that checks whose it is.
 */
const pathOf = (file: File): string =>
  webUtils
    ? webUtils.getPathForFile(file)
    : ((Object.getOwnPropertyDescriptor(File.prototype, "path")?.get?.call(file) as string | undefined) ?? "");

const bridge: Bridge = {
  openFile: (path) => ask("file:open", path === undefined ? {} : { path }),
  openDropped: async (file) => {
    const path = pathOf(file);
    return { path, answer: await ask("file:drop", { path }) };
  },
  reopenFile: (id) => ask("file:reopen", { id }),
  openDemo: () => ask("file:demo", null),
  closeFile: (id) => ask("file:close", { id }),
  openFiles: () => ask("file:list", null),
  recentFiles: () => ask("file:recent", null),
  query: (file, name, parameters) => ask("query", { file, name, parameters }) as never,
  readSettings: () => ask("settings:read", null),
  writeSettings: (change) => ask("settings:write", change),
  saveExport: (file) => ask("export:save", file),
  copyText: (text) => ask("text:copy", { text }),
  about: () => ask("about", null),
  on: (name, listener) => {
    if (!EVENTS.has(name)) throw new Error(`no such event: ${name}`);
    // The event object stays here: it carries the sender.
    const handler = (_event: unknown, ...told: unknown[]) => listener(told[0] as never);
    ipcRenderer.on(name, handler);
    return () => ipcRenderer.removeListener(name, handler);
  },
};

contextBridge.exposeInMainWorld("overlaylab", bridge);
