/** The files that are open: one database process each, and an eye on whether somebody writes to them, or takes them away. */
import { basename, join, resolve } from "node:path";
import { type Answer, problem, value } from "../contract/answers";
import type { OpenFile } from "../contract/files";
import type { Opened } from "../contract/process";
import type { QueryName } from "../contract/queries";
import { Database, type Limits } from "./database";
import type { Home } from "./home";
import { seen } from "./watch";

/** A run stores a trial every few seconds. */
const LOOK_MS = 2_000;

interface Entry {
  file: OpenFile;
  database: Database;
  identity: string;
  /** Of the last look; null before the first. */
  signature: string | null;
  looking: boolean;
}

export interface FilesParts {
  script: string;
  /** Copies of files that cannot be read where they are. */
  copies: string;
  home: Home;
  limits: Limits;
  changed: (file: OpenFile) => void;
}

export class Files {
  private readonly entries = new Map<string, Entry>();
  private counter = 0;
  private timer: NodeJS.Timeout | null = null;
  /** Of the last file that was opened. */
  sqlite: string | null = null;

  constructor(private readonly parts: FilesParts) {}

  list(): OpenFile[] {
    return [...this.entries.values()].map((entry) => entry.file);
  }

  async open(given: string): Promise<Answer<OpenFile>> {
    const path = resolve(given);
    const already = [...this.entries.values()].find(
      (entry) => entry.file.path === path && entry.file.place === "there",
    );
    if (already) return value(already.file);
    const id = `f${++this.counter}`;
    const { script, copies, limits } = this.parts;
    const database = new Database(path, script, join(copies, id), limits);
    // Before the file is read: what is written meanwhile is seen at the next look.
    const before = await seen(path, "");
    const opened = await database.open(null);
    if (!opened.ok) {
      database.close();
      return opened;
    }
    this.sqlite = opened.value.sqlite;
    const file: OpenFile = {
      id,
      path,
      name: basename(path),
      place: "there",
      revision: 0,
      ...this.told(path, opened.value),
    };
    this.entries.set(id, {
      file,
      database,
      identity: opened.value.identity,
      signature: before.signature,
      looking: false,
    });
    this.timer ??= setInterval(() => void this.look(), LOOK_MS);
    return value(file);
  }

  /** Whatever lies at the path of an open file now, in its stead. */
  async reopen(id: string): Promise<Answer<OpenFile>> {
    const entry = this.entries.get(id);
    if (!entry) return problem("gone", "This file is not open any more.", "Open it again.");
    const opened = await this.open(entry.file.path);
    if (opened.ok && opened.value.id !== id) this.close(id);
    return opened;
  }

  async query(
    id: string,
    name: QueryName,
    parameters: Record<string, string | number | null>,
  ): Promise<Answer<unknown[]>> {
    const entry = this.entries.get(id);
    return entry
      ? entry.database.query(entry.identity, name, parameters)
      : problem("gone", "This file is not open any more.", "Open it again.");
  }

  close(id: string): void {
    this.entries.get(id)?.database.close();
    this.entries.delete(id);
    if (this.entries.size === 0 && this.timer) {
      clearInterval(this.timer);
      this.timer = null;
    }
  }

  closeAll(): void {
    for (const id of [...this.entries.keys()]) this.close(id);
  }

  private told(
    path: string,
    { bytes, schemaVersion, foreign, notes, machines }: Opened,
  ): Pick<OpenFile, "bytes" | "schemaVersion" | "foreign" | "notes"> {
    return { bytes, schemaVersion, foreign: [...this.parts.home.reasons(path, machines), ...foreign], notes };
  }

  private async look(): Promise<void> {
    await Promise.all([...this.entries.values()].filter(({ looking }) => !looking).map((entry) => this.lookAt(entry)));
  }

  private async lookAt(entry: Entry): Promise<void> {
    entry.looking = true;
    try {
      const { path } = entry.file;
      const { place, signature } = await seen(path, entry.identity);
      const written = place === "there" && signature !== entry.signature;
      if (!written && place === entry.file.place) return;
      let part: Partial<OpenFile> = { place };
      if (written) {
        entry.signature = signature;
        const opened = await entry.database.open(entry.identity);
        // Where it cannot be read any more, the views say so: they ask again, as for any other change.
        part = { place, revision: entry.file.revision + 1, ...(opened.ok ? this.told(path, opened.value) : {}) };
      }
      entry.file = { ...entry.file, ...part };
      if (this.entries.has(entry.file.id)) this.parts.changed(entry.file);
    } finally {
      entry.looking = false;
    }
  }
}
