/** A file of an older schema, brought to ours in a copy: the file itself is left as it is. */
import { DatabaseSync } from "@photostructure/sqlite";
import { recovered } from "./connect";
import { CURRENT, VERSIONS, type Version } from "./schema";

/** copy: of a file whose parts were found to be exactly those of that version, so nothing foreign can run. */
export function migrated(copy: string, version: number): string {
  recovered(copy);
  const db = new DatabaseSync(copy, { defensive: false }); // a migration edits a CHECK in place
  try {
    // A copy that is thrown away needs neither a journal nor a disk that has written it.
    db.exec(
      "PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF",
    );
    for (let next = version; next < CURRENT; next++) db.exec((VERSIONS[next] as Version).sql);
    db.exec(`PRAGMA user_version = ${CURRENT}`);
  } finally {
    db.close();
  }
  return copy;
}
