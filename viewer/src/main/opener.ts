/** Opening files for whoever asks: command line, dialog, drop, recent list, demo. Remembers what was opened. */
import { basename, join } from "node:path";
import type { Answer } from "../contract/answers";
import type { OpenFile, RecentFile } from "../contract/files";
import type { Files } from "./files";
import type { RecentFiles } from "./recent";

export class Opener {
  constructor(
    readonly files: Files,
    private readonly recentFiles: RecentFiles,
    private readonly resources: string,
  ) {}

  async open(path: string): Promise<Answer<OpenFile>> {
    const opened = await this.files.open(path);
    if (opened.ok) this.recentFiles.add(opened.value.path);
    return opened;
  }

  /** Real recorded results that come with the viewer. */
  openDemo(): Promise<Answer<OpenFile>> {
    return this.files.open(join(this.resources, "demo.sqlite"));
  }

  recent(): RecentFile[] {
    return this.recentFiles.list().map(({ path, openedAt }) => ({ path, openedAt, name: basename(path) }));
  }
}
