/** Which files are this lab's own: those in its results folder, and the demo. Any other comes from elsewhere, and is said to. */
import { realpathSync } from "node:fs";
import { isAbsolute, relative } from "node:path";
import { ended, plainText } from "../contract/text";

export class Home {
  /** path: a file, or a folder of files; null where this lab's results are not known. own: what comes with the viewer. */
  constructor(
    private readonly path: string | null,
    private readonly own: string[],
  ) {}

  /** Why a file is not one of this lab's; none for its own. */
  reasons(file: string, machines: string[]): string[] {
    if (this.own.some((each) => within(file, each)) || (this.path !== null && within(file, this.path))) return [];
    const where =
      this.path === null
        ? "It was not opened from a lab's results."
        : `It lies outside of this lab's results (${this.path}).`;
    const by = machines.length
      ? [
          ended(
            `It was measured on: ${machines
              .slice(0, 3)
              .map((machine) => plainText(machine, 60))
              .join("; ")}${machines.length > 3 ? "; …" : ""}`,
          ),
        ]
      : [];
    return [where, ...by];
  }
}

function within(file: string, folder: string): boolean {
  const way = relative(real(folder), real(file));
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
