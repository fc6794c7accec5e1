/** The grid of tiers × overlays as ratio to the host, coloured by how far each lies from 1. */
import type { GridCellRow, TableKey } from "../../../contract/compare";
import { type Figure, plain } from "../../charts/figure";
import { publishedOf } from "../../lib/published";
import { number, ratio } from "../../lib/units";
import { publishedCell } from "./published";
import type { Tiers } from "./tiers";
import { blocksWords, type Cells, gridFigure } from "./tiers-figure";

/** ColorBrewer's PuOr, told apart by people with any colour vision: orange is worse than the host, purple better. */
const COLOURS: [number, string][] = [
  [0, "#b35806"],
  [0.17, "#e08214"],
  [0.33, "#fdb863"],
  [0.45, "#fee0b6"],
  [0.5, "#f7f7f7"],
  [0.55, "#d8daeb"],
  [0.67, "#b2abd2"],
  [1, "#8073ac"],
];
/** Factors from the host at which the colours end: the least and the most. */
const [LEAST, MOST] = [1.25, 16];
const short = (cell: GridCellRow): string =>
  cell.ratio === null ? "–" : cell.ratio_same_step ? "=" : ratio(cell.ratio);

/** In a cell: what is claimed; nothing below six blocks. */
const verdict = (cell: GridCellRow): string =>
  cell.ratio_same_step || cell.ratio === null ? "" : (cell.verdict_words ?? "");

function hover(cell: GridCellRow): string[] {
  const interval =
    cell.interval_low !== null && cell.interval_high !== null && cell.coverage !== null
      ? `interval ${ratio(cell.interval_low)}–${ratio(cell.interval_high)}, ${number(cell.coverage * 100)} % coverage`
      : `blocks ${ratio(cell.ratio_low)}–${ratio(cell.ratio_high)}; nothing is claimed`;
  return [
    cell.ratio === null
      ? "no ratio: no block has both its own value and the host's"
      : `ratio ${ratio(cell.ratio)}${cell.ratio_same_step ? ": says nothing, within the tool's step" : ""}`,
    ...(cell.ratio === null ? [] : [interval, `verdict: ${cell.verdict_words ?? "none below six blocks"}`]),
    blocksWords(cell.ratio_blocks),
    ...(cell.theory === null ? [] : [`header theory ${ratio(cell.theory)}`]),
    ...publishedOf(cell.published).map(
      (one) => `published ${publishedCell(one)} (${plain(one.publication)})${one.comparable ? "" : ", at another MTU"}`,
    ),
  ];
}

/** Logarithms are drawn: of a ratio of zero there is none. */
const known = (cell: GridCellRow): cell is GridCellRow & { ratio: number } => cell.ratio !== null && cell.ratio > 0;

export function tiersFigure(
  tiers: Tiers,
  key: Pick<TableKey, "benchmark" | "metric" | "placement">,
  better: "higher" | "lower",
): Figure {
  const sign = better === "higher" ? 1 : -1;
  const logs = tiers.columns.flatMap(({ cells }) =>
    [...cells.values()].filter(known).map((cell) => Math.abs(Math.log2(cell.ratio))),
  );
  const end = Math.min(Math.log2(MOST), Math.max(Math.log2(LEAST), ...logs));
  const steps = (
    end > 3 ? [1 / 16, 1 / 4, 1, 4, 16] : end > 1 ? [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8] : [0.5, 0.8, 1, 1.25, 2]
  ).filter((factor) => Math.abs(Math.log2(factor)) <= end + 1e-9);
  const cells: Cells = {
    name: "ratio",
    what: "ratio to the host",
    at: (cell) => (known(cell) ? sign * Math.log2(cell.ratio) : null),
    lines: (cell) => [short(cell), verdict(cell)],
    hover,
    blocks: (cell) => cell.ratio_blocks,
    colours: COLOURS,
    range: [-end, end],
    bar: {
      title: "ratio to host",
      tickvals: steps.map((factor) => sign * Math.log2(factor)),
      ticktext: steps.map((factor) => ratio(factor).replace(/\.?0+$/, "")),
    },
    columns: [
      "ratio to host",
      "within the tool's step",
      "smallest block",
      "largest block",
      "interval low",
      "interval high",
      "coverage",
      "verdict",
      "header theory",
      "published",
      "blocks",
    ].map((name) => ({ name })),
    row: (cell) => [
      cell.ratio,
      cell.ratio_same_step ? "yes" : "no",
      cell.ratio_low,
      cell.ratio_high,
      cell.interval_low,
      cell.interval_high,
      cell.coverage,
      cell.verdict_words,
      cell.theory,
      publishedOf(cell.published)
        .map((one) => `${one.ratio ?? "–"} ${one.publication}`)
        .join("; ") || null,
      cell.ratio_blocks,
    ],
  };
  return gridFigure(tiers, key, cells);
}
