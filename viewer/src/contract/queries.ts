import type { RunRow } from "./run";

/**
 * Every question that may be put to a database: name → parameters and one row of the answer. A name is a file, see
 * docs/adding-a-view.md; nothing else is ever executed. Rows are as SQLite has them: base units, null for missing.
 * Here stands what several views ask; each view's own are added beside its rows, in the file of its name.
 */
export interface Queries {
  runs: { parameters: Record<string, never>; row: RunRow };
}

export type QueryName = keyof Queries;
export type Parameters<Name extends QueryName> = Queries[Name]["parameters"];
export type Row<Name extends QueryName> = Queries[Name]["row"];
