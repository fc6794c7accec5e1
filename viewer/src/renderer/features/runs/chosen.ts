import type { OpenFile } from "../../../contract/files";
import type { RunRow } from "../../../contract/run";

/** A run of an open file. */
export interface Chosen {
  of: OpenFile;
  run: RunRow;
}
