import type { VerdictRow } from "../../../contract/overview";
import type { Settings } from "../../../contract/settings";
import { clean } from "../../lib/text";
import { number, ratio, scaleOf, withUnit } from "../../lib/units";

/** One sentence on one overlay and mode: its verdict, and what that rests on. */
export function verdictSentence(row: VerdictRow, chosen: Pick<Settings, "rateUnit" | "timeUnit">): string {
  const scale = scaleOf(row.unit, [row.median], chosen);
  const median = row.median === null ? "no value" : withUnit(row.median, scale);
  const blocks = (n: number): string => `${n} ${n === 1 ? "block" : "blocks"}`;
  if (row.overlay === "host") return `${median}, median of ${blocks(row.blocks)}: what the others are compared with.`;
  const left = row.left_out
    ? ` ${blocks(row.left_out)} without a value of the host ${row.left_out === 1 ? "is" : "are"} left out.`
    : "";
  if (row.ratio === null) return `${median}, median of ${blocks(row.blocks)}; nothing to compare with.${left}`;
  const same = row.ratio_same_step ? "within the tool's step of the host" : `${ratio(row.ratio)} of the host`;
  const interval =
    row.interval_low !== null && row.interval_high !== null && row.coverage !== null
      ? ` (between ${ratio(row.interval_low)} and ${ratio(row.interval_high)}, with ${number(row.coverage * 100)} % confidence)`
      : row.ratio_blocks > 1
        ? ` (blocks: ${ratio(row.ratio_low)} to ${ratio(row.ratio_high)})`
        : "";
  const facts = `${median}, ${same}${interval}, ${blocks(row.ratio_blocks)}.${left}`;
  if (row.verdict_words !== null) {
    const alone = row.verdict_alone_words;
    const other =
      alone !== null && alone !== row.verdict_words ? ` (${clean(alone)}, had nothing else been compared)` : "";
    return `${clean(row.verdict_words)}${other}: ${facts}`;
  }
  return `no verdict${row.provisional ? " before the run ends" : row.ratio_blocks < 6 ? " below six blocks" : ""}: ${facts}`;
}
