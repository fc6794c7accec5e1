/** What the file system says of an open file, without touching it: whether it is the same, and whether somebody wrote to it. */
import { stat } from "node:fs/promises";
import type { OpenFile } from "../contract/files";

export interface Seen {
  place: OpenFile["place"];
  /** Another one means that somebody wrote to the file or to the log beside it. */
  signature: string;
}

export async function seen(path: string, identity: string): Promise<Seen> {
  const [file, log] = await Promise.all([told(path), told(`${path}-wal`)]);
  if (!file) return { place: "gone", signature: "" };
  const place = `${file.dev}:${file.ino}` === identity ? "there" : "taken by another";
  return { place, signature: [file, log].map((each) => (each ? `${each.size} ${each.mtimeMs}` : "-")).join(" ") };
}

const told = (path: string) => stat(path).catch(() => null);
