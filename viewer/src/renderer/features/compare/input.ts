/** What figure and table of one run are made of. */
import type { ComparisonRow, DotRow, TableRow } from "../../../contract/compare";
import type { Settings } from "../../../contract/settings";
import type { AxisChoice } from "./axis-choice";

export interface CompareInput {
  table: TableRow;
  /** The variants to be drawn, the host first. */
  rows: ComparisonRow[];
  dots: DotRow[];
  /** Each block over the host's; else in the metric's unit. */
  asRatio: boolean;
  axis: AxisChoice;
  /** The tier in words, for the title. */
  tier: string;
  units: Pick<Settings, "rateUnit" | "timeUnit">;
}
