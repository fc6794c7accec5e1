// Writes src/generated/: what the sources take from files that are not TypeScript, and from folders.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "src/generated");
const MIGRATIONS = join(HERE, "..", "db", "migrations");

/** Where SQL lies: what several views ask, and each view's own beside it. */
export const SHARED_QUERIES = join(HERE, "src/database/queries");
export const FEATURES = join(HERE, "src/renderer/features");

const names = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** What a file of ours holds, at each version: every table, index and view, as SQLite itself keeps them; and the way there. */
function schema() {
  const db = new DatabaseSync(":memory:", { defensive: false } as object); // a migration edits a CHECK in place
  const versions = names(MIGRATIONS)
    .filter((name) => name.endsWith(".sql"))
    .map((name) => {
      const sql = readFileSync(join(MIGRATIONS, name), "utf8");
      db.exec(sql);
      const parts = (type: string) =>
        Object.fromEntries(
          db
            .prepare("SELECT name, sql FROM sqlite_master WHERE type = ? AND sql IS NOT NULL ORDER BY rowid")
            .all(type)
            .map((part) => [String(part.name), part.sql]),
        );
      return { sql, tables: parts("table"), indexes: parts("index"), views: parts("view") };
    });
  return { applicationId: db.prepare("PRAGMA application_id").get()?.application_id, versions };
}

/** SQL by name, of every file. A question is asked by its name alone: two files with one name are an error. */
export function queries(shared = SHARED_QUERIES, features = FEATURES): Record<string, string> {
  const found: Record<string, string> = {};
  for (const folder of [shared, ...names(features).map((view) => join(features, view, "queries"))]) {
    for (const file of names(folder).filter((name) => name.endsWith(".sql"))) {
      const name = basename(file, ".sql");
      if (Object.hasOwn(found, name)) throw new Error(`${join(folder, file)}: there is another ${file}`);
      found[name] = readFileSync(join(folder, file), "utf8");
    }
  }
  return found;
}

/** A module with the page of each view: what `view.tsx` in a folder of features/ exports as View. */
export function pages(features = FEATURES): string {
  const views = names(features).filter((view) => existsSync(join(features, view, "view.tsx")));
  const imports = views.map((view) => `import { View as ${view} } from "../renderer/features/${view}/view";\n`);
  return `${imports.join("")}\nexport const PAGES = { ${views.join(", ")} };\n`;
}

/** Nothing is written that is there already: whoever watches the folder, or may not write to it, need not know. */
export function generate(): void {
  mkdirSync(OUT, { recursive: true });
  const files = {
    "schema.json": `${JSON.stringify(schema(), null, 1)}\n`,
    "queries.json": `${JSON.stringify(queries(), null, 1)}\n`,
    "pages.ts": pages(),
  };
  for (const [name, text] of Object.entries(files)) {
    const path = join(OUT, name);
    if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) generate();
