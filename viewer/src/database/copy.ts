/** A copy in a folder of ours, of a file that cannot be read where it is, or must be changed to be read. */
import { constants, copyFileSync, existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";

const TRIES = 5;
/** What SQLite keeps beside a database and needs to make it whole. */
const BESIDE = ["-wal", "-journal"];

/** With what lies beside it, from one moment: copied again where somebody wrote meanwhile. */
export function copied(path: string, folder: string): string {
  const target = join(folder, basename(path).slice(0, 100) || "database");
  for (let tried = 1; ; tried++) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const before = signature(path);
    for (const end of ["", ...BESIDE]) {
      if (end === "" || existsSync(path + end)) copyFileSync(path + end, target + end, constants.COPYFILE_FICLONE);
    }
    if (signature(path) === before) return target;
    if (tried === TRIES) throw new Error("a run writes to this file faster than it can be copied");
  }
}

/** Changes whenever somebody writes to the file, or puts another in its place. */
export function signature(path: string): string {
  return ["", ...BESIDE]
    .map((end) => {
      try {
        const { dev, ino, size, mtimeMs } = statSync(path + end);
        return `${dev}:${ino}:${size}:${mtimeMs}`;
      } catch {
        return "-";
      }
    })
    .join(" ");
}
