/** Files that are written whole or not at all. */
import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";

/**
 * Through a new file beside it: whoever reads meanwhile, and a disk that is full, leave what stood there before.
 * Rejects as the file system does, with nothing left behind.
 */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.part`;
  try {
    await writeFile(unfinished, content, { flag: "wx" });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => undefined);
    throw error;
  }
}
