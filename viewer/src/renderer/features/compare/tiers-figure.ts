/** The grid of tiers × overlays as a figure: what is in its cells is told by the scale that it is drawn on. */
import type { GridCellRow, TableKey } from "../../../contract/compare";
import { type Figure, plain } from "../../charts/figure";
import { blockSpan, blocksOfEach } from "../../lib/counts";
import type { Cell, Grid } from "../../lib/grid";
import { clean, metricWords } from "../../lib/text";
import { time } from "../../lib/units";
import type { Tiers } from "./tiers";

/** What a cell shows, on one scale. */
export interface Cells {
  /** The trace's. */
  name: string;
  /** In the title. */
  what: string;
  /** Where its colour lies; null: nothing to be drawn. */
  at: (cell: GridCellRow) => number | null;
  /** Its words, the first its value. Empty ones are left out. */
  lines: (cell: GridCellRow) => string[];
  /** Between the names and the run, for Plotly. */
  hover: (cell: GridCellRow) => string[];
  blocks: (cell: GridCellRow) => number;
  colours: [number, string][];
  range: readonly [number, number];
  bar: { title: string; tickvals?: number[]; ticktext?: string[] };
  /** Of the table, between tier and run. */
  columns: Grid["columns"];
  row: (cell: GridCellRow) => Cell[];
}

/** Legible on each of them, which Plotly's own choice is not. */
const ON_COLOURS = "#000000";
const ROW = 42;
/** px of a row whose verdict stands in lines of one word, where columns are too narrow for two. */
const TALL_ROW = 48;
/** More columns than these are narrow. */
const WIDE_MOST = 10;
/** More columns than this are too narrow for titles set level. */
const LEVEL = 7;
/** Px of a title's letter, at the height that a slanted one takes. */
const SLANTED = 5.5;

export const blocksWords = (count: number): string => blockSpan([count]);

export function gridFigure(
  tiers: Tiers,
  key: Pick<TableKey, "benchmark" | "metric" | "placement">,
  shown: Cells,
): Figure {
  const { columns, variants } = tiers;
  const at = (variant: string, column: number): GridCellRow | undefined => columns[column]?.cells.get(variant);
  const known = (cell: GridCellRow | undefined): cell is GridCellRow => cell !== undefined && shown.at(cell) !== null;
  const xs = columns.map((_, x) => x);
  const slanted = columns.length > LEVEL;
  const narrow = columns.length > WIDE_MOST;
  const row = narrow ? TALL_ROW : ROW;
  // Where columns are narrow, a claim stands in lines of one word.
  const words = (cell: GridCellRow): string => {
    const [value, ...claim] = shown.lines(cell);
    return [value, ...claim.map((line) => (narrow ? line.replaceAll(" ", "<br>") : line))].filter(Boolean).join("<br>");
  };
  const hover = (cell: GridCellRow, name: string, title: string): string =>
    [
      `${name}, ${title}`,
      ...shown.hover(cell),
      `run of ${time(cell.started_at ?? cell.created_at)}; click: that run`,
    ].join("<br>");
  const titles = columns.map(({ title }) => title.map((line) => plain(line)).join(slanted ? " · " : "<br>"));
  const longest = Math.max(0, ...columns.map(({ title }) => title.join(" · ").length));
  const each = <Found>(make: (cell: GridCellRow | undefined, name: string, title: string) => Found): Found[][] =>
    variants.map(({ key: own, name }) =>
      columns.map(({ title }, x) => make(at(own, x), plain(name), plain(title.join(", "), 120))),
    );
  const blocks = columns.flatMap(({ cells }) => [...cells.values()].map((cell) => shown.blocks(cell)));
  const lines = Math.max(1, ...columns.map(({ title }) => title.length));
  const above = 14 + (slanted ? longest * SLANTED : 17 * lines);
  const textfont = { size: slanted ? 11 : 12 };
  return {
    title: `${clean(key.benchmark)} (${clean(key.placement)}): ${clean(metricWords(key.metric))}, ${shown.what} by tier and overlay; ${blocksOfEach(blocks)}`,
    data: [
      {
        type: "heatmap",
        name: "missing",
        x: xs,
        y: variants.map((_, y) => y),
        z: each((cell) => (known(cell) ? null : 1)),
        text: each((cell) => (known(cell) ? "" : "–")) as never,
        customdata: each((cell) => cell?.run_id ?? null) as never,
        hovertext: each((cell, name, title) =>
          cell ? hover(cell, name, title) : `${name}, ${title}<br>not measured`,
        ) as never,
        texttemplate: "%{text}",
        hovertemplate: "%{hovertext}<extra></extra>",
        colorscale: [
          [0, "rgba(128,136,146,0.16)"],
          [1, "rgba(128,136,146,0.16)"],
        ],
        textfont: { ...textfont, color: "#7b828b" },
        showscale: false,
        xgap: 3,
        ygap: 3,
      },
      {
        type: "heatmap",
        name: shown.name,
        x: xs,
        y: variants.map((_, y) => y),
        z: each((cell) => (cell ? shown.at(cell) : null)),
        text: each((cell) => (known(cell) ? words(cell) : "")) as never,
        customdata: each((cell) => cell?.run_id ?? null) as never,
        hovertext: each((cell, name, title) => (cell ? hover(cell, name, title) : "")) as never,
        texttemplate: "%{text}",
        hovertemplate: "%{hovertext}<extra></extra>",
        colorscale: shown.colours,
        textfont: { ...textfont, color: ON_COLOURS },
        zmin: shown.range[0],
        zmax: shown.range[1],
        xgap: 3,
        ygap: 3,
        hoverongaps: false,
        colorbar: {
          title: { text: shown.bar.title, side: "right", font: { size: 12 } },
          ...(shown.bar.tickvals ? { tickvals: shown.bar.tickvals, ticktext: shown.bar.ticktext } : {}),
          exponentformat: "none",
          separatethousands: true,
          thickness: 12,
          outlinewidth: 0,
          y: 1,
          yanchor: "top",
          lenmode: "pixels",
          len: Math.max(130, Math.min(300, variants.length * row)),
        },
      } as never,
    ],
    layout: {
      height: variants.length * row + 36 + above + (variants.length < 3 ? 60 : 0),
      margin: { t: above, r: 20, b: 16, l: 60 },
      xaxis: {
        side: "top",
        tickmode: "array",
        tickvals: xs,
        ticktext: titles,
        showgrid: false,
        zeroline: false,
        fixedrange: true,
        tickangle: slanted ? -55 : 0,
      },
      yaxis: {
        autorange: "reversed",
        tickmode: "array",
        tickvals: variants.map((_, y) => y),
        ticktext: variants.map(({ name }) => plain(name)),
        showgrid: false,
        zeroline: false,
        fixedrange: true,
      },
      hovermode: "closest",
    },
    grid: gridOf(tiers, shown),
    summary: variants
      .map(
        ({ key: own, name }) =>
          `${name}: ${columns
            .map(({ title }, x) => {
              const cell = at(own, x);
              return `${title[0]} ${cell ? shown.lines(cell).filter(Boolean).join(" ") : "not measured"}`;
            })
            .join(", ")}`,
      )
      .join("; "),
  };
}

/** A row for each cell, with all that is known of it. */
function gridOf({ columns, variants }: Tiers, shown: Cells): Grid {
  const found = variants.flatMap(({ key, name }) =>
    columns.map(({ title, cells }): { row: Cell[]; run: string | null } => {
      const cell = cells.get(key);
      const run = cell?.run_id ?? null;
      return { run, row: [name, title.join(", "), ...(cell ? shown.row(cell) : shown.columns.map(() => null)), run] };
    }),
  );
  return {
    columns: [{ name: "overlay, mode" }, { name: "tier" }, ...shown.columns, { name: "run" }],
    rows: found.map(({ row }) => row),
    points: found.map(({ run }) => run),
  };
}
