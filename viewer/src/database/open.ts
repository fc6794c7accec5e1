/** Opening a file that may be anybody's: read-only, its schema compared with ours, and our own views laid over its tables. */
import { constants } from "@photostructure/sqlite";
import { type Answer, problem, value } from "../contract/answers";
import type { Opened } from "../contract/process";
import { type Connected, type Connection, connect } from "./connect";
import { copied, signature } from "./copy";
import { explained } from "./explained";
import { type Looked, look } from "./look";
import { migrated } from "./migrate";
import { type Given, rows, type Statement } from "./rows";
import { CURRENT, compared, NEWEST, type Part, recognised } from "./schema";

export interface Handle {
  about: Opened;
  /** The file is in WAL mode: while it is held open, the end of a run cannot make it one plain file. */
  wal: boolean;
  /** Somebody changed its structure, or it is read in a way that does not see changes: it has to be opened again. */
  stale(): boolean;
  all(name: string, sql: string, parameters: Given): Answer<unknown[]>;
  close(): void;
}

/** folder: where copies are made, should one be needed. */
export function open(path: string, folder: string): Answer<Handle> {
  const before = signature(path);
  const looked = look(path);
  if (!looked.ok) return looked;
  let connected: Connected | null = null;
  try {
    connected = connect(path, looked.value, folder);
    const found = checked(connected, path, folder);
    if (!found.ok) {
      connected.db.close();
      return found;
    }
    connected = found.value;
    return value(handle(connected, looked.value, () => signature(path) !== before));
  } catch (error) {
    connected?.db.close();
    return explained(error, path);
  }
}

const number = (db: Connection, name: string): number =>
  Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0] as number;

const parts = (db: Connection): Part[] =>
  db.prepare("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'").all() as Part[];

interface Checked extends Connected {
  foreign: string[];
  version: number;
}

/** The same connection, or one to a copy that was brought to our schema. */
function checked(connected: Connected, path: string, folder: string): Answer<Checked> {
  const { db } = connected;
  const version = recognised(number(db, "application_id"), number(db, "user_version"));
  if (!version.ok) return version;
  const foreign = compared(version.value, parts(db));
  if (!foreign.ok) return foreign;
  if (version.value === CURRENT) return value({ ...connected, foreign: foreign.value, version: CURRENT });
  if (foreign.value.length) {
    // A migration would run what the file brings.
    return problem(
      "older",
      `This file is of an older overlaylab (schema ${version.value}; this viewer reads ${CURRENT}), and not only overlaylab wrote to it.`,
      "./task results:list brings a file up to date and keeps a copy of the old one: LAB_DB=FILE ./task results:list",
      foreign.value.join(" "),
    );
  }
  db.close();
  const migratedCopy = migrated(copied(path, folder), version.value);
  const looked = look(migratedCopy);
  if (!looked.ok) return looked;
  const reopened = connect(migratedCopy, looked.value, folder);
  const again = compared(CURRENT, parts(reopened.db));
  if (!again.ok) {
    reopened.db.close();
    return again;
  }
  const note = `This file is of an older overlaylab (schema ${version.value}). What you see is a copy that was brought to schema ${CURRENT}; the file itself is as it was. LAB_DB=FILE ./task results:refresh brings the file up to date, and adds the comparisons that it lacks.`;
  return value({ db: reopened.db, notes: [note], blind: true, foreign: again.value, version: version.value });
}

function handle(
  { db, notes, blind, foreign, version }: Connected & Partial<Checked>,
  looked: Looked,
  changed: () => boolean,
): Handle {
  // The public views, as this viewer knows them, come first when a query names one; the file's own are never read.
  db.exec("PRAGMA query_only = OFF");
  for (const sql of Object.values(NEWEST.views)) db.exec(sql.replace(/^CREATE VIEW/, "CREATE TEMP VIEW"));
  db.exec("PRAGMA query_only = ON");
  const machines = (
    db
      .prepare(
        "SELECT substr(machine, 1, 80) AS machine FROM _run UNION SELECT substr(machine, 1, 80) FROM _attempt LIMIT 4",
      )
      .all() as { machine: string }[]
  ).map(({ machine }) => machine);
  const sqlite = (db.prepare("SELECT sqlite_version() AS version").get() as { version: string }).version;
  const schemaVersion = number(db, "schema_version");
  const structure = db.prepare("PRAGMA schema_version");
  restrict(db);
  const statements = new Map<string, Statement>();
  return {
    about: {
      bytes: looked.bytes,
      identity: looked.identity,
      schemaVersion: version ?? CURRENT,
      foreign: foreign ?? [],
      notes,
      machines,
      sqlite,
    },
    wal: looked.wal && !blind,
    stale: () => (blind ? changed() : (structure.get() as { schema_version: number }).schema_version !== schemaVersion),
    all(name, sql, parameters) {
      const statement = statements.get(name) ?? db.prepare(sql);
      statements.set(name, statement);
      return rows(statement, parameters);
    },
    close: () => db.close(),
  };
}

/** From here on a statement may read our tables, our views and JSON, and do nothing else (sqlite3_set_authorizer). */
function restrict(db: Connection): void {
  const inFile = new Set([...Object.keys(NEWEST.tables), "json_each", "json_tree"]);
  const ours = new Set(Object.keys(NEWEST.views));
  const { SQLITE_OK, SQLITE_DENY, SQLITE_SELECT, SQLITE_READ, SQLITE_FUNCTION, SQLITE_RECURSIVE, SQLITE_PRAGMA } =
    constants;
  db.setAuthorizer((action, first, _column, schema) => {
    switch (action) {
      case SQLITE_SELECT:
      case SQLITE_FUNCTION:
      case SQLITE_RECURSIVE:
        return SQLITE_OK;
      case SQLITE_READ: {
        // Of no schema: the statement's own WITH and subqueries.
        const known = schema === null || (first !== null && (schema === "temp" ? ours : inFile).has(first));
        return known ? SQLITE_OK : SQLITE_DENY;
      }
      case SQLITE_PRAGMA:
        return first === "schema_version" ? SQLITE_OK : SQLITE_DENY;
      default:
        return SQLITE_DENY;
    }
  });
}
