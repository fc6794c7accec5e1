/** What SQLite and the file system say, as a problem that a person can act on. */
import { type Problem, problem } from "../contract/answers";

/** SQLite's primary result codes: https://www.sqlite.org/rescode.html */
const BUSY = 5,
  LOCKED = 6,
  NOMEM = 7,
  READONLY = 8,
  IOERR = 10,
  CORRUPT = 11,
  FULL = 13,
  CANTOPEN = 14,
  TOOBIG = 18,
  AUTH = 23,
  NOTADB = 26;

/** The primary code, where SQLite said it. */
export const sqliteCode = (error: unknown): number | null => {
  const given = error as { errcode?: unknown; sqliteCode?: unknown };
  const code = typeof given.errcode === "number" ? given.errcode : given.sqliteCode;
  if (typeof code === "number") return code & 0xff;
  // The module gives no code where preparing failed.
  const words = error instanceof Error ? error.message : "";
  if (/disk image is malformed|corrupt/i.test(words)) return CORRUPT;
  if (/too big/i.test(words)) return TOOBIG;
  if (/not a database/i.test(words)) return NOTADB;
  if (/readonly|read-only/i.test(words)) return READONLY;
  if (/unable to open/i.test(words)) return CANTOPEN;
  if (/is locked/i.test(words)) return BUSY;
  if (/out of memory/i.test(words)) return NOMEM;
  return null;
};

/** Where a reader's right to write beside the file is what is missing; a copy helps. */
export const needsCopy = (error: unknown): boolean => [READONLY, CANTOPEN].includes(sqliteCode(error) ?? -1);

export function explained(error: unknown, path: string): { ok: false; problem: Problem } {
  const words = error instanceof Error ? error.message : String(error);
  const of = (code: Problem["code"], title: string, advice: string) => problem(code, title, advice, words);
  switch ((error as { code?: string }).code) {
    case "ENOENT":
    case "ENOTDIR":
      return of("absent", "This file is not there (any more).", "Was it moved or deleted? Choose another file.");
    case "EACCES":
    case "EPERM":
      return of(
        "unreadable",
        "This file may not be read by this user.",
        `Ask its owner for the right to read it (chmod a+r), or for a copy. ls -l ${path} says whose it is.`,
      );
    case "ENOSPC":
    case "EDQUOT":
      return of(
        "unreadable",
        "This file had to be copied to be read, and there is no room for the copy.",
        "Make room on the disk of your home folder, then open it again.",
      );
    case "ENXIO":
    case "EISDIR":
    case "ELOOP":
    case "ENAMETOOLONG":
      return of(
        "not-a-database",
        "This is no ordinary file.",
        "Choose a results database, such as results/lab.sqlite.",
      );
    case "EIO":
    case "ESTALE":
      return of(
        "damaged",
        "The disk or the network could not give this file.",
        "Copy it to a disk of this machine, and open the copy.",
      );
  }
  if (/malformed JSON/i.test(words))
    return of(
      "altered",
      "A text of this file that has to be JSON is none.",
      "Somebody changed this file by hand, or it is damaged. Ask for the original.",
    );
  switch (sqliteCode(error)) {
    case NOTADB:
      return of(
        "not-a-database",
        "This file is no SQLite database, or it is encrypted.",
        "Choose a results database, such as results/lab.sqlite.",
      );
    case CORRUPT:
      return of(
        "damaged",
        "This file is damaged: a part of it cannot be read.",
        "Was it copied while a run wrote to it, or does a -wal of another file lie beside it? Copy file and -wal again after the run. If this is all there is: sqlite3 FILE .recover saves what can be saved.",
      );
    case IOERR:
      return of(
        "damaged",
        "The disk could not give a part of this file.",
        "Copy it to another disk, and open the copy.",
      );
    case BUSY:
    case LOCKED:
      return of(
        "locked",
        "Another program keeps this file locked.",
        "Wait until it is done, then open the file again.",
      );
    case FULL:
      return of(
        "unreadable",
        "There is no room for what has to be written beside a reader.",
        "Make room on the disk of your home folder, then open it again.",
      );
    case READONLY:
    case CANTOPEN:
      return of(
        "unreadable",
        "This file could not be opened, nor a copy of it.",
        "Copy it, and the -wal beside it, to a folder of yours, and open the copy.",
      );
    case TOOBIG:
    case NOMEM:
      return of(
        "too-large",
        "A single value of this file is larger than the viewer reads.",
        "The rest of the file can be looked at. sqlite3 reads values of any size.",
      );
    case AUTH:
      return of(
        "refused",
        "This would read what is no table of overlaylab's.",
        "Report this: the viewer should not ask for it.",
      );
    default:
      return of("unexpected", "This file could not be read.", "Try a copy of it. ./task results:show may say more.");
  }
}
