/** The same table twice: as a person reads it, and dot by dot for other programs. */
import type { ComparisonRow, TableRow } from "../../../contract/compare";
import type { Settings } from "../../../contract/settings";
import type { Cell, Grid } from "../../lib/grid";
import { publishedOf } from "../../lib/published";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { number, ratio, type Scale, scaleOf } from "../../lib/units";
import type { CompareInput } from "./input";
import { publishedCell } from "./published";
import { type Dot, isHost, variantKey } from "./ratios";
import { ratioWords, verdict } from "./words";

/** What ./task results:show prints of it. A column that would be empty is not there. */
export function summaryTable(
  table: TableRow,
  rows: ComparisonRow[],
  units: Pick<Settings, "rateUnit" | "timeUnit">,
): Grid {
  const scale = scaleOf(
    table.unit,
    rows.map(({ median }) => median),
    units,
  );
  const others = rows.filter((row) => !isHost(row));
  const columns: {
    name: string;
    unit?: string;
    words?: boolean;
    cell: (row: ComparisonRow) => Cell;
    when?: boolean;
  }[] = [
    { name: "overlay, mode", words: true, cell: (row) => clean(variantWords(row)) },
    { name: "blocks", cell: (row) => row.blocks },
    { name: "median", unit: scale.unit, cell: (row) => number(row.median, scale) },
    {
      name: "smallest–largest",
      unit: scale.unit,
      cell: (row) => (row.blocks < 2 ? null : `${number(row.low, scale)}–${number(row.high, scale)}`),
      when: rows.some(({ blocks }) => blocks > 1),
    },
    { name: "ratio to host", cell: ratioWords, when: others.some((row) => row.ratio !== null) },
    {
      name: "coverage",
      cell: (row) => (row.coverage === null ? null : `${number(row.coverage * 100)} %`),
      when: others.some((row) => row.coverage !== null),
    },
    {
      name: "verdict",
      words: true,
      cell: (row) => verdict(row) || "–",
      when: others.some((row) => row.ratio !== null || row.left_out > 0),
    },
    {
      name: "headers",
      cell: (row) => (row.theory === null ? null : isHost(row) ? "1" : ratio(row.theory)),
      when: others.some((row) => row.theory !== null),
    },
    {
      name: "published",
      words: true,
      cell: (row) =>
        publishedOf(row.published)
          .map((one) => `${publishedCell(one)} (${clean(one.publication)}${one.comparable ? "" : ", other MTU"})`)
          .join(", ") || "–",
      when: others.some((row) => publishedOf(row.published).length > 0),
    },
    {
      name: "left out",
      cell: (row) => (isHost(row) ? null : row.left_out),
      when: others.some((row) => row.left_out > 0),
    },
    { name: "failed", cell: (row) => row.failed, when: rows.some((row) => row.failed > 0) },
    { name: "void", cell: (row) => row.void, when: rows.some((row) => row.void > 0) },
  ];
  const shown = columns.filter(({ when }) => when !== false);
  return {
    columns: shown.map(({ name, unit, words }) => ({
      name,
      ...(unit && unit !== "ratio" ? { unit } : {}),
      ...(words ? {} : { number: true }),
    })),
    rows: rows.map((row) => shown.map(({ cell }) => cell(row))),
  };
}

/** A row for each dot, with all that is claimed of its variant; a variant without dots has one too. */
export function compareGrid(
  { table, rows, asRatio }: CompareInput,
  dots: Map<string, Dot[]>,
  scale: Scale,
): { grid: Grid } {
  const unit = asRatio ? {} : { unit: scale.unit };
  const told = (value: number | null): Cell => (value === null ? null : asRatio ? value : value / scale.factor);
  const columns = [
    { name: "overlay" },
    { name: "mode" },
    { name: "encrypted" },
    { name: "block" },
    { name: "trial" },
    { name: asRatio ? `${table.metric}, ratio to the host` : table.metric, ...unit },
    { name: "median", ...unit },
    { name: "smallest block", ...unit },
    { name: "largest block", ...unit },
    { name: "interval low", unit: "ratio" },
    { name: "interval high", unit: "ratio" },
    { name: "coverage" },
    { name: "verdict" },
    { name: "header theory", unit: "ratio" },
    { name: "published", unit: "ratio" },
    { name: "blocks left out" },
    { name: "failed" },
    { name: "void" },
  ];
  const points: (number | null)[] = [];
  const found = rows.flatMap((row) => {
    const own = dots.get(variantKey(row)) ?? [];
    return (own.length ? own : [null]).map((dot): Cell[] => {
      points.push(dot?.trial ?? null);
      return [
        clean(row.overlay),
        row.mode === null ? null : clean(row.mode),
        row.encrypted ? "yes" : "no",
        dot?.block ?? null,
        dot?.trial ?? null,
        told(dot?.value ?? null),
        told(asRatio ? row.ratio : row.median),
        told(asRatio ? row.ratio_low : row.low),
        told(asRatio ? row.ratio_high : row.high),
        row.interval_low,
        row.interval_high,
        row.coverage,
        verdict(row) || null,
        row.theory,
        publishedOf(row.published)
          .map((one) => `${one.ratio ?? "–"} ${clean(one.publication)}`)
          .join("; ") || null,
        row.left_out,
        row.failed,
        row.void,
      ];
    });
  });
  return { grid: { columns, rows: found, points } };
}
