/** What a row of a table says, in the words that stand beside its strip and in the table under the plot. */
import type { ComparisonRow } from "../../../contract/compare";
import { clean } from "../../lib/text";
import { ratio } from "../../lib/units";
import { isHost } from "./ratios";

const blocks = (count: number): string => `${count} ${count === 1 ? "block" : "blocks"}`;

export const SAME_STEP = "ratio says nothing: within the tool's step";

/** .841 (.764–.936), or .841 [.75–.98] where only the blocks' own range is known. */
export function ratioWords(row: ComparisonRow): string {
  if (isHost(row)) return row.ratio === null ? "–" : "1";
  if (row.ratio === null) return "–";
  if (row.ratio_same_step) return "= (within one step)";
  if (row.interval_low !== null && row.interval_high !== null)
    return `${ratio(row.ratio)} (${ratio(row.interval_low)}–${ratio(row.interval_high)})`;
  const [low, high] = [ratio(row.ratio_low), ratio(row.ratio_high)];
  return low === high ? ratio(row.ratio) : `${ratio(row.ratio)} [${low}–${high}]`;
}

/** faster, slower, …, or why nothing is claimed; nothing for the host. */
export function verdict(row: ComparisonRow): string {
  if (isHost(row)) return "";
  if (row.ratio === null) return row.left_out ? "no host value to compare with" : "not compared";
  if (row.ratio_same_step) return SAME_STEP;
  if (row.provisional) return "provisional: no verdict yet";
  return row.verdict_words !== null ? clean(row.verdict_words) : `no verdict from ${blocks(row.ratio_blocks)}`;
}

/** What is missing from the strip; nothing where nothing is. */
export const missing = (row: ComparisonRow): string =>
  [
    row.left_out && !isHost(row) ? `${blocks(row.left_out)} without a host value left out` : "",
    row.failed ? `${row.failed} failed` : "",
    row.void ? `${row.void} void` : "",
  ]
    .filter(Boolean)
    .join(", ");
