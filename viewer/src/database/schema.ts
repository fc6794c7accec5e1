/** Whether a file's tables are the ones that this viewer's questions were written for. */
import { type Answer, problem, value } from "../contract/answers";
import schema from "../generated/schema.json";

export interface Part {
  type: string;
  name: string;
  sql: string | null;
}

export interface Version {
  sql: string;
  tables: Record<string, string>;
  indexes: Record<string, string>;
  views: Record<string, string>;
}

/** Ascending: version n of the schema is at n - 1. */
export const VERSIONS = schema.versions as unknown as Version[];
export const CURRENT = VERSIONS.length;
export const APPLICATION_ID: number = schema.applicationId;
export const NEWEST = VERSIONS[CURRENT - 1] as Version;

const TOKEN =
  /('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])|(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|\s+)|([\w$\u0080-\uffff]+|[\s\S])/g;

/** SQLite keeps the text of CREATE as it was typed: comments and spaces between its words do not count, all else does. */
export const normal = (sql: string): string => {
  const words: string[] = [];
  for (const [, quoted, blank, word] of sql.matchAll(TOKEN)) if (blank === undefined) words.push(quoted ?? word ?? "");
  return words.join(" ");
};

const same = (part: Part | undefined, type: string, sql: string): boolean =>
  part !== undefined && part.type === type && part.sql !== null && normal(part.sql) === normal(sql);

const few = (names: string[]): string => `${names.slice(0, 5).map(shown).join(", ")}${names.length > 5 ? ", …" : ""}`;

/** A name out of a file, for a sentence. */
const shown = (name: string): string => (name.length > 40 ? `${name.slice(0, 39)}…` : name);

/** Its version where it is a results database that this viewer knows; else what keeps it from being read. */
export function recognised(applicationId: number, version: number): Answer<number> {
  if (applicationId !== APPLICATION_ID) {
    return problem(
      "not-ours",
      "This is a SQLite database of another program.",
      "Choose a results database of overlaylab, such as results/lab.sqlite.",
      `application_id ${applicationId}`,
    );
  }
  if (version > CURRENT) {
    return problem(
      "newer",
      `This file was written by a newer overlaylab (schema ${version}; this viewer knows ${CURRENT}).`,
      "Update the checkout (git pull), and start the viewer from there: ./task view.",
    );
  }
  if (version < 1) {
    return problem(
      "altered",
      "This file says that it is a results database, but not of which schema.",
      "Was it made by hand, or from a dump? Ask for the original.",
      `user_version ${version}`,
    );
  }
  return value(version);
}

/** What is in the file and not ours, none for one of ours; or which table keeps it from being read. */
export function compared(version: number, found: Part[]): Answer<string[]> {
  const { tables, indexes, views } = VERSIONS[version - 1] as Version;
  // Two parts of one name: only a hand that edits sqlite_master can do that.
  const at = new Map<string, Part>();
  for (const part of found) {
    if (at.has(part.name))
      return problem(
        "altered",
        `This file holds two things named ${shown(part.name)}.`,
        "Somebody changed this file's structure. Ask for the original.",
      );
    at.set(part.name, part);
  }
  for (const [name, sql] of Object.entries(tables)) {
    const part = at.get(name);
    if (!same(part, "table", sql)) {
      return problem(
        "altered",
        `The table ${name} is not as overlaylab makes it.`,
        "Somebody changed this file's structure. Ask for the original.",
        part === undefined ? "It is not there." : `${part.type}: ${(part.sql ?? "").slice(0, 2000)}`,
      );
    }
  }
  const known = new Set([tables, views, indexes].flatMap((parts) => Object.keys(parts)));
  const strange = found
    .filter((part) => !known.has(part.name) && !(part.type === "index" && part.sql === null))
    .map((part) => `${part.type} ${part.name}`);
  const changed = [
    ...Object.entries(views)
      .filter(([name, sql]) => !same(at.get(name), "view", sql))
      .map(([name]) => `view ${name}`),
    ...Object.entries(indexes)
      .filter(([name, sql]) => !same(at.get(name), "index", sql))
      .map(([name]) => `index ${name}`),
  ];
  return value([
    ...(strange.length ? [`It holds what overlaylab did not put there, and what is never run: ${few(strange)}.`] : []),
    ...(changed.length
      ? [
          `Its own public views or indexes are not as overlaylab makes them; the viewer uses views of its own: ${few(changed)}.`,
        ]
      : []),
  ]);
}
