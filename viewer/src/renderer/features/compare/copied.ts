/** The table of Compare for a spreadsheet: what the page writes into one cell, in columns that can be calculated with. */
import type { ComparisonRow, TableRow } from "../../../contract/compare";
import type { Settings } from "../../../contract/settings";
import type { Cell, Grid } from "../../lib/grid";
import { scaleOf } from "../../lib/units";
import { isHost } from "./ratios";
import { summaryTable } from "./table";

type Units = Pick<Settings, "rateUnit" | "timeUnit">;

interface Column {
  name: string;
  unit?: string;
  value: (row: ComparisonRow) => number | null;
}

/** Nothing is claimed of the host, nor of a ratio within the tool's step. */
const claimed =
  (of: (row: ComparisonRow) => number | null) =>
  (row: ComparisonRow): number | null =>
    isHost(row) || row.ratio_same_step ? null : of(row);

/** By the name of the page's column. */
function numbers(table: TableRow, rows: ComparisonRow[], units: Units): Record<string, Column[]> {
  const scale = scaleOf(
    table.unit,
    rows.map(({ median }) => median),
    units,
  );
  const measured = (name: string, of: (row: ComparisonRow) => number | null): Column => ({
    name,
    ...(scale.unit && scale.unit !== "ratio" ? { unit: scale.unit } : {}),
    value: (row) => {
      const found = of(row);
      return found === null ? null : found / scale.factor;
    },
  });
  return {
    median: [measured("median", ({ median }) => median)],
    "smallest–largest": [measured("smallest", ({ low }) => low), measured("largest", ({ high }) => high)],
    "ratio to host": [
      { name: "ratio to host", value: (row) => (row.ratio_same_step && !isHost(row) ? null : row.ratio) },
      { name: "smallest ratio", value: claimed((row) => row.ratio_low) },
      { name: "largest ratio", value: claimed((row) => row.ratio_high) },
      { name: "interval low", value: claimed((row) => row.interval_low) },
      { name: "interval high", value: claimed((row) => row.interval_high) },
    ],
    coverage: [{ name: "coverage", value: ({ coverage }) => coverage }],
    headers: [{ name: "headers", value: ({ theory }) => theory }],
  };
}

const cell = (found: Cell | undefined): Cell => (found === undefined || found === "–" ? null : found);

export function copiedTable(table: TableRow, rows: ComparisonRow[], units: Units): Grid {
  const shown = summaryTable(table, rows, units);
  const known = numbers(table, rows, units);
  return {
    columns: shown.columns.flatMap((column) => known[column.name] ?? [column]),
    rows: rows.map((row, at) =>
      shown.columns.flatMap(
        ({ name }, column): Cell[] => known[name]?.map(({ value }) => value(row)) ?? [cell(shown.rows[at]?.[column])],
      ),
    ),
  };
}
