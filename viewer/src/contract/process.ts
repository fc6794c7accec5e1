import type { Answer } from "./answers";
import type { QueryName } from "./queries";

/**
 * Between main and a database process: one question, one answer. The path comes along, as a process may be a new one, and
 * which file it has to be (null: whichever is there): another one in its place is never read in its name.
 */
export type ToProcess = { path: string; identity: string | null } & (
  | { kind: "open" }
  | { kind: "query"; name: QueryName; parameters: Record<string, string | number | null> }
);

export interface Opened {
  schemaVersion: number;
  bytes: number;
  /** Device and inode. */
  identity: string;
  /** What the file holds that overlaylab did not put there. */
  foreign: string[];
  /** How it is read, where a person should know: a copy, without its log. */
  notes: string[];
  /** Where its runs were measured, as the runs say; the first few. */
  machines: string[];
  sqlite: string;
}

export type FromProcess = Answer<unknown>;
