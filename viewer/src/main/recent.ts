/** The newest files that were opened, in a JSON file of the user's folder. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const MOST = 10;

interface Entry {
  path: string;
  openedAt: string;
}

export class RecentFiles {
  constructor(private readonly path: string) {}

  list(): Entry[] {
    try {
      const found: unknown = JSON.parse(readFileSync(this.path, "utf8"));
      return Array.isArray(found) ? found.filter(isEntry).slice(0, MOST) : [];
    } catch {
      return [];
    }
  }

  add(path: string): void {
    const entries = [
      { path, openedAt: new Date().toISOString() },
      ...this.list().filter((entry) => entry.path !== path),
    ];
    try {
      mkdirSync(dirname(this.path), { recursive: true });
      writeFileSync(this.path, JSON.stringify(entries.slice(0, MOST), null, 2));
    } catch (error) {
      console.error(`the list of recent files was not kept: ${String(error)}`);
    }
  }
}

const isEntry = (found: unknown): found is Entry =>
  typeof found === "object" &&
  found !== null &&
  typeof (found as Entry).path === "string" &&
  typeof (found as Entry).openedAt === "string";
