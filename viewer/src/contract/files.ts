/** A results database that is open. */
export interface OpenFile {
  /** Names it in requests. */
  id: string;
  path: string;
  /** Base name, for headings. */
  name: string;
  bytes: number;
  schemaVersion: number;
  /** Why this file is not one that this lab alone has written: shown as a banner. Empty for our own. */
  foreign: string[];
  /** How it is read, where a person should know: a copy, without its log. */
  notes: string[];
  /** Whether its path still leads to it; where not, what is shown was read before. */
  place: "there" | "gone" | "taken by another";
  /** Rises whenever somebody has written to the file: what was read before is old. */
  revision: number;
}

export interface RecentFile {
  path: string;
  name: string;
  openedAt: string;
}
