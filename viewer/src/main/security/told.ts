/**
 * Which paths the page may ask for by name: those that main itself told it of (recent files, files that are open). Others come
 * from the person, by main's own dialog or by a drop, whose path preload takes from the browser and not from the page.
 */
import { resolve } from "node:path";

export class ToldPaths {
  private readonly paths = new Set<string>();

  tell<Entry extends { path: string }>(entries: Entry[]): Entry[] {
    for (const { path } of entries) this.paths.add(resolve(path));
    return entries;
  }

  knows(path: string): boolean {
    return this.paths.has(resolve(path));
  }
}
