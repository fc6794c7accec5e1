/** What can be told of a file before SQLite touches it. A pipe or a device is never waited for. */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { type Answer, problem, value } from "../contract/answers";
import { explained } from "./explained";

export interface Looked {
  bytes: number;
  /** Names the file itself, whatever its path: device and inode. */
  identity: string;
  /** Its header says that a writer works, or worked, with a log beside it (journal mode WAL). */
  wal: boolean;
  /** Size of the log beside it; null: there is none. */
  walBytes: number | null;
  /** A rollback journal lies beside it. */
  journal: boolean;
}

const MAGIC = "SQLite format 3\0";
const CHOOSE = "Choose a results database, such as results/lab.sqlite.";

export function look(path: string): Answer<Looked> {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    return (error as { code?: string }).code === "EISDIR"
      ? problem("not-a-database", "This is a folder.", CHOOSE)
      : explained(error, path);
  }
  try {
    const stat = fstatSync(file);
    if (stat.isDirectory()) return problem("not-a-database", "This is a folder.", CHOOSE);
    if (!stat.isFile())
      return problem("not-a-database", "This is no ordinary file: a pipe, a socket or a device.", CHOOSE);
    if (stat.size === 0)
      return problem("empty", "This file is empty.", "A run writes one: ./task lab:weave. Or look at the demo.");
    const head = Buffer.alloc(100);
    const read = readSync(file, head, 0, 100, 0);
    if (head.toString("latin1", 0, 16) !== MAGIC)
      return problem("not-a-database", "This file is no SQLite database, or it is encrypted.", CHOOSE);
    const walBytes = sizeBeside(`${path}-wal`);
    const journal = sizeBeside(`${path}-journal`) !== null;
    const expected = read === 100 ? bytesBy(head) : 512;
    // With a log beside it, SQLite may be about to make it whole.
    if (expected !== null && stat.size < expected && !walBytes && !journal) {
      return problem(
        "damaged",
        `This file is cut short: ${stat.size} of ${expected} bytes are there.`,
        "Copy it again, after the run has ended. If this is all there is: sqlite3 FILE .recover saves what can be saved.",
      );
    }
    return value({
      bytes: stat.size,
      identity: `${stat.dev}:${stat.ino}`,
      wal: head[18] === 2 || head[19] === 2,
      walBytes,
      journal,
    });
  } catch (error) {
    return explained(error, path);
  } finally {
    closeSync(file);
  }
}

/** What the header says the file's size is; null where it does not say (https://www.sqlite.org/fileformat2.html#in_header_database_size). */
function bytesBy(head: Buffer): number | null {
  const pageSize = head.readUInt16BE(16) === 1 ? 65536 : head.readUInt16BE(16);
  return head.readUInt32BE(24) === head.readUInt32BE(92) ? pageSize * head.readUInt32BE(28) : null;
}

function sizeBeside(path: string): number | null {
  try {
    return statSync(path).size;
  } catch {
    return null;
  }
}
