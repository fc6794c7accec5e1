import type { Answer, Problem } from "./answers";
import type { OpenFile, RecentFile } from "./files";
import type { Parameters, QueryName, Row } from "./queries";
import type { Settings } from "./settings";

/**
 * The whole contract between renderer and main, in one place. Requests are what the renderer may ask; each answers with
 * an `Answer`. Events are what main tells without being asked.
 */
export interface Requests {
  /** Without a path: main asks the person; null where they cancelled. With one: only of a file that main told of. */
  "file:open": { parameters: { path?: string }; answer: OpenFile | null };
  /** A file that was dropped on the window: preload has its path from the browser. */
  "file:drop": { parameters: { path: string }; answer: OpenFile };
  /** Whatever lies at its path now, in its stead. */
  "file:reopen": { parameters: { id: string }; answer: OpenFile };
  "file:close": { parameters: { id: string }; answer: null };
  "file:list": { parameters: null; answer: OpenFile[] };
  "file:recent": { parameters: null; answer: RecentFile[] };
  "file:demo": { parameters: null; answer: OpenFile };
  query: {
    parameters: { file: string; name: QueryName; parameters: Record<string, string | number | null> };
    answer: unknown[];
  };
  "settings:read": { parameters: null; answer: Settings };
  "settings:write": { parameters: Partial<Settings>; answer: Settings };
  /** Main asks where to; answers the path, or null where the person cancelled. */
  "export:save": { parameters: ExportedFile; answer: string | null };
  "text:copy": { parameters: { text: string }; answer: null };
  about: { parameters: null; answer: About };
}

export interface ExportedFile {
  suggestedName: string;
  kind: "svg" | "png" | "csv" | "html";
  /** Text of SVG, CSV and HTML; base64 of PNG. */
  content: string;
}

export interface About {
  version: string;
  build: string;
  electron: string;
  chromium: string;
  sqlite: string;
}

export interface Events {
  "file:opened": OpenFile;
  /** Somebody wrote to the file; or it went away. */
  "file:changed": OpenFile;
  "file:failed": { path: string; problem: Problem };
  /** A menu item that the renderer carries out. */
  command: Command;
}

export type Command =
  | { name: "open" }
  | { name: "view"; view: string }
  | { name: "export-all" }
  | { name: "theme"; theme: Settings["theme"] }
  | { name: "help" };

export type Channel = keyof Requests;
export type EventName = keyof Events;
export type RequestParameters<Name extends Channel> = Requests[Name]["parameters"];
export type RequestAnswer<Name extends Channel> = Answer<Requests[Name]["answer"]>;

/** What preload puts on `window.overlaylab`: named functions, and no way to any other channel. */
export interface Bridge {
  openFile(path?: string): Promise<Answer<OpenFile | null>>;
  /** A file that was dropped on the window; with its path, to say which of them could not be opened. */
  openDropped(file: File): Promise<{ path: string; answer: Answer<OpenFile> }>;
  openDemo(): Promise<Answer<OpenFile>>;
  reopenFile(id: string): Promise<Answer<OpenFile>>;
  closeFile(id: string): Promise<Answer<null>>;
  openFiles(): Promise<Answer<OpenFile[]>>;
  recentFiles(): Promise<Answer<RecentFile[]>>;
  query<Name extends QueryName>(file: string, name: Name, parameters: Parameters<Name>): Promise<Answer<Row<Name>[]>>;
  readSettings(): Promise<Answer<Settings>>;
  writeSettings(change: Partial<Settings>): Promise<Answer<Settings>>;
  saveExport(file: ExportedFile): Promise<Answer<string | null>>;
  copyText(text: string): Promise<Answer<null>>;
  about(): Promise<Answer<About>>;
  on<Name extends EventName>(name: Name, listener: (event: Events[Name]) => void): () => void;
}
