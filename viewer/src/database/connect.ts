/**
 * A connection that reads a file and never writes to it nor beside it, if need be through a copy. A reader of a file in WAL
 * mode keeps an index (-shm) beside it (https://www.sqlite.org/wal.html#read_only_databases), and has to be allowed to:
 *
 * no log beside the file      nobody writes to it, so it is read as it stands ("immutable"), until it changes
 * a log, and -shm allowed     as SQLite does it
 * a log, -shm not allowed     a copy of file and log, in a folder of ours
 */
import { chmodSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import { copied } from "./copy";
import { needsCopy } from "./explained";
import type { Looked } from "./look";

export type Connection = InstanceType<typeof DatabaseSync>;

/** No text that a tool printed comes near it; a value beyond would only fill the memory of three processes. */
const LARGEST_VALUE = 64e6;

export interface Connected {
  db: Connection;
  /** How the file is read, where a person should know. */
  notes: string[];
  /** Nothing tells this connection of changes: whoever asks looks at the file first. */
  blind: boolean;
}

const COPY_NOTE =
  "What you see is a copy: the file was left in the middle of writing, and its folder may not be written to by this user. It is copied again when it changes.";
const NO_LOG_NOTE =
  "A run was writing to this file, and its log (-wal) is not beside it. If it was copied without, what the run stored last is missing here.";

/** folder: for copies, made where needed. */
export function connect(path: string, looked: Looked, folder: string): Connected {
  // No other connection may be writing where there is no log; whoever begins to makes one, which is seen.
  if (looked.wal && looked.walBytes === null) return { db: immutable(path), notes: [NO_LOG_NOTE], blind: true };
  try {
    return { db: readable(path), notes: [], blind: false };
  } catch (error) {
    if (!needsCopy(error)) throw error;
    if (looked.wal && looked.walBytes === 0) return { db: immutable(path), notes: [], blind: true };
    return { db: readable(recovered(copied(path, folder))), notes: [COPY_NOTE], blind: true };
  }
}

const readable = (location: string): Connection =>
  prepared(new DatabaseSync(location, { readOnly: true, limits: { length: LARGEST_VALUE, attach: 0 } }));

const immutable = (path: string): Connection => readable(`${pathToFileURL(path).href}?immutable=1`);

function prepared(db: Connection): Connection {
  try {
    // What a file brings (views, triggers, functions in its schema) is never run; 2 s of patience with a writer. Memory
    // mapping would turn a file that shrinks into a crash.
    db.exec(
      "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0; PRAGMA busy_timeout = 2000",
    );
    // The first read is where SQLite looks for the log and its index.
    db.prepare("SELECT count(*) FROM sqlite_master").get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A copy of ours, made whole from its log or journal: whatever opens it for writing does that. */
export function recovered(copy: string): string {
  chmodSync(copy, 0o600);
  const db = new DatabaseSync(copy, { defensive: true });
  try {
    db.exec("PRAGMA trusted_schema = OFF; PRAGMA journal_mode = DELETE");
  } finally {
    db.close();
  }
  return copy;
}
