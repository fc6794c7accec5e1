/** The grid of tiers × overlays as absolute values: medians over blocks, coloured by how large they are. */
import type { GridCellRow, GridTableRow } from "../../../contract/compare";
import type { Settings } from "../../../contract/settings";
import { type Figure, plain } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { type PublishedRatio, publishedOf } from "../../lib/published";
import { metricWords } from "../../lib/text";
import { number, ratio, type Scale, scaleOf, withUnit } from "../../lib/units";
import { isLog } from "./axis-choice";
import { publishedCell } from "./published";
import { isHost } from "./ratios";
import type { Tiers } from "./tiers";
import { blocksWords, type Cells, gridFigure } from "./tiers-figure";

/** ColorBrewer's Blues without its darkest, on which black is not read: one hue, as more is not better everywhere. */
const COLOURS: [number, string][] = [
  [0, "#f7fbff"],
  [0.25, "#deebf7"],
  [0.5, "#c6dbef"],
  [0.75, "#9ecae1"],
  [1, "#6baed6"],
];

/** What headers alone would leave of the host's median of the same run. */
export const theoryOf = (cell: GridCellRow): number | null =>
  isHost(cell) || cell.theory === null || cell.host_median === null ? null : cell.theory * cell.host_median;

/** On the host's row the host's own figures, of every pair that was printed. */
const printed = (cell: GridCellRow, one: PublishedRatio): number[] =>
  isHost(cell) ? one.host_values : one.overlay_values;

/** A value in the unit that suits it: from the smallest tier to the largest it is a factor of thousands. */
type Say = (value: number | null) => string;

function hover(cell: GridCellRow, say: Say): string[] {
  const theory = theoryOf(cell);
  const compared = !isHost(cell) && cell.ratio !== null;
  return [
    cell.median === null ? "no value" : `median ${say(cell.median)}`,
    ...(cell.blocks > 1 ? [`blocks ${say(cell.low)} to ${say(cell.high)}; nothing is claimed`] : []),
    blocksWords(cell.blocks),
    ...(isHost(cell) ? [] : [`the host: ${say(cell.host_median)}`]),
    ...(compared
      ? [
          cell.ratio_same_step
            ? "ratio says nothing: within the tool's step"
            : `ratio ${ratio(cell.ratio)}: ${cell.verdict_words ?? "no verdict below six blocks"}`,
        ]
      : []),
    ...(theory === null ? [] : [`header theory × the host's median: ${say(theory)} (ratio ${ratio(cell.theory)})`]),
    ...publishedOf(cell.published).map(
      (one) =>
        `published ${printed(cell, one).map(say).join(", ") || "–"}, ratio ${publishedCell(one)} (${plain(one.publication)})${one.comparable ? "" : ", at another MTU"}`,
    ),
  ];
}

/** Colours by logarithm where values span more than a decade, as an axis would; then their ends are an axis's. */
function scaleFor(values: readonly number[]): { log: boolean; range: [number, number]; bar: Partial<Cells["bar"]> } {
  if (!isLog("auto", values)) return { log: false, range: [0, Math.max(0, ...values) || 1], bar: {} };
  const { range, tickvals, ticktext } = logAxis(values) as {
    range: [number, number];
    tickvals: number[];
    ticktext: string[];
  };
  return { log: true, range, bar: { tickvals: tickvals.map(Math.log10), ticktext } };
}

export function tiersAbsoluteFigure(
  tiers: Tiers,
  table: Pick<GridTableRow, "benchmark" | "metric" | "placement" | "unit" | "better">,
  units: Pick<Settings, "rateUnit" | "timeUnit">,
): Figure {
  const medians = tiers.columns.flatMap(({ cells }) => [...cells.values()].flatMap(({ median }) => median ?? []));
  const scale = scaleOf(table.unit, medians, units);
  const { log, range, bar } = scaleFor(medians.map((value) => value / scale.factor));
  const unit = scale.unit && scale.unit !== "ratio" ? ` (${scale.unit})` : "";
  const own = { unit: table.unit };
  const scaleOfOne = (value: number | null): Scale => scaleOf(table.unit, [value], units);
  const say: Say = (value) => withUnit(value, scaleOfOne(value));
  const cells: Cells = {
    name: "median",
    what: "median of blocks",
    at: ({ median }) => (median === null ? null : log ? Math.log10(median / scale.factor) : median / scale.factor),
    // The unit has a line of its own, as a claim has: columns are narrow.
    lines: ({ median }) => {
      const own = scaleOfOne(median);
      return [number(median, own), own.unit === "ratio" ? "" : own.unit];
    },
    hover: (cell) => hover(cell, say),
    blocks: ({ blocks }) => blocks,
    colours: COLOURS,
    range,
    bar: { title: `${plain(metricWords(table.metric))}${unit}; ${table.better} is better`, ...bar },
    columns: [
      { name: "median", ...own },
      { name: "smallest block", ...own },
      { name: "largest block", ...own },
      { name: "blocks" },
      { name: "the host's median", ...own },
      { name: "ratio to host" },
      { name: "verdict" },
      { name: "header theory × the host's median", ...own },
      { name: "header theory", unit: "ratio" },
      { name: "published", ...own },
    ],
    row: (cell) => [
      cell.median,
      cell.low,
      cell.high,
      cell.blocks,
      cell.host_median,
      cell.ratio,
      cell.verdict_words,
      theoryOf(cell),
      isHost(cell) ? null : cell.theory,
      publishedOf(cell.published)
        .map((one) => `${printed(cell, one).join(", ") || "–"} ${one.publication}`)
        .join("; ") || null,
    ],
  };
  return gridFigure(tiers, table, cells);
}
