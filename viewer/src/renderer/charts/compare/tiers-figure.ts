/** The grid of tiers × overlays as a figure: each cell the ratio to the host, coloured by how far it lies from 1. */
import type { GridCellRow, TableKey } from "../../../contract/compare";
import { publishedOf } from "../../published";
import { number, ratio, time } from "../../units";
import { blocksOfEach } from "../counts";
import { type Cell, clean, type Figure, type Grid, plain } from "../figure";
import { metricWords } from "../time";
import { publishedCell } from "./published";
import type { Tiers } from "./tiers";

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
/** Legible on each of them, which Plotly's own choice is not. */
const ON_COLOURS = "#000000";
/** Factors from the host at which the colours end: the least and the most. */
const [LEAST, MOST] = [1.25, 16];
const ROW = 42;
/** px of a row whose verdict stands in lines of one word, where columns are too narrow for two. */
const TALL_ROW = 48;
/** More columns than these are narrow. */
const WIDE_MOST = 10;
/** More columns than this are too narrow for titles set level. */
const LEVEL = 7;
/** Px of a title's letter, at the height that a slanted one takes. */
const SLANTED = 5.5;

const short = (cell: GridCellRow): string =>
  cell.ratio === null ? "–" : cell.ratio_same_step ? "=" : ratio(cell.ratio);

/** In a cell: what is claimed; nothing below six blocks. */
const verdict = (cell: GridCellRow): string =>
  cell.ratio_same_step || cell.ratio === null ? "" : (cell.verdict_words ?? "");

function hover(cell: GridCellRow, name: string, title: string): string {
  const interval =
    cell.interval_low !== null && cell.interval_high !== null && cell.coverage !== null
      ? `interval ${ratio(cell.interval_low)}–${ratio(cell.interval_high)}, ${number(cell.coverage * 100)} % coverage`
      : `blocks ${ratio(cell.ratio_low)}–${ratio(cell.ratio_high)}; nothing is claimed`;
  return [
    `${name}, ${title}`,
    cell.ratio === null
      ? "no ratio: no block has both its own value and the host's"
      : `ratio ${ratio(cell.ratio)}${cell.ratio_same_step ? ": says nothing, within the tool's step" : ""}`,
    ...(cell.ratio === null ? [] : [interval, `verdict: ${cell.verdict_words ?? "none below six blocks"}`]),
    `${cell.ratio_blocks} ${cell.ratio_blocks === 1 ? "block" : "blocks"}`,
    ...(cell.theory === null ? [] : [`header theory ${ratio(cell.theory)}`]),
    ...publishedOf(cell.published).map(
      (one) => `published ${publishedCell(one)} (${plain(one.publication)})${one.comparable ? "" : ", at another MTU"}`,
    ),
    `run of ${time(cell.started_at ?? cell.created_at)}; click: that run`,
  ].join("<br>");
}

export function tiersFigure(
  tiers: Tiers,
  key: Pick<TableKey, "benchmark" | "metric" | "placement">,
  better: "higher" | "lower",
): Figure {
  const { columns, variants } = tiers;
  const sign = better === "higher" ? 1 : -1;
  const at = (variant: string, column: number): GridCellRow | undefined => columns[column]?.cells.get(variant);
  const known = (cell: GridCellRow | undefined): cell is GridCellRow & { ratio: number } =>
    cell !== undefined && cell.ratio !== null && cell.ratio > 0;
  const logs = columns.flatMap(({ cells }) =>
    [...cells.values()].filter(known).map((cell) => Math.abs(Math.log2(cell.ratio))),
  );
  const end = Math.min(Math.log2(MOST), Math.max(Math.log2(LEAST), ...logs));
  const xs = columns.map((_, x) => x);
  const slanted = columns.length > LEVEL;
  const narrow = columns.length > WIDE_MOST;
  const row = narrow ? TALL_ROW : ROW;
  const words = (cell: GridCellRow): string => (narrow ? verdict(cell).replaceAll(" ", "<br>") : verdict(cell));
  const titles = columns.map(({ title }) => title.map((line) => plain(line)).join(slanted ? " · " : "<br>"));
  const longest = Math.max(0, ...columns.map(({ title }) => title.join(" · ").length));
  const each = <Found>(make: (cell: GridCellRow | undefined, name: string, title: string) => Found): Found[][] =>
    variants.map(({ key: own, name }) =>
      columns.map(({ title }, x) => make(at(own, x), plain(name), plain(title.join(", "), 120))),
    );
  const blocks = columns.flatMap(({ cells }) => [...cells.values()].map((cell) => cell.ratio_blocks));
  const steps = (
    end > 3 ? [1 / 16, 1 / 4, 1, 4, 16] : end > 1 ? [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8] : [0.5, 0.8, 1, 1.25, 2]
  ).filter((factor) => Math.abs(Math.log2(factor)) <= end + 1e-9);
  const lines = Math.max(1, ...columns.map(({ title }) => title.length));
  const above = 14 + (slanted ? longest * SLANTED : 17 * lines);
  const textfont = { size: slanted ? 11 : 12 };
  return {
    title: `${clean(key.benchmark)} (${clean(key.placement)}): ${clean(metricWords(key.metric))}, ratio to the host by tier and overlay; ${blocksOfEach(blocks)}`,
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
        name: "ratio",
        x: xs,
        y: variants.map((_, y) => y),
        z: each((cell) => (known(cell) ? sign * Math.log2(cell.ratio) : null)),
        text: each((cell) => (known(cell) ? [short(cell), words(cell)].filter(Boolean).join("<br>") : "")) as never,
        customdata: each((cell) => cell?.run_id ?? null) as never,
        hovertext: each((cell, name, title) => (cell ? hover(cell, name, title) : "")) as never,
        texttemplate: "%{text}",
        hovertemplate: "%{hovertext}<extra></extra>",
        colorscale: COLOURS,
        textfont: { ...textfont, color: ON_COLOURS },
        zmin: -end,
        zmax: end,
        zmid: 0,
        xgap: 3,
        ygap: 3,
        hoverongaps: false,
        colorbar: {
          title: { text: "ratio to host", side: "right", font: { size: 12 } },
          tickvals: steps.map((factor) => sign * Math.log2(factor)),
          ticktext: steps.map((factor) => ratio(factor).replace(/\.?0+$/, "")),
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
    grid: gridOf(tiers),
    summary: variants
      .map(
        ({ key: own, name }) =>
          `${name}: ${columns
            .map(({ title }, x) => {
              const cell = at(own, x);
              return `${title[0]} ${cell ? [short(cell), verdict(cell)].filter(Boolean).join(" ") : "not measured"}`;
            })
            .join(", ")}`,
      )
      .join("; "),
  };
}

/** A row for each cell, with all that is claimed of it. */
function gridOf({ columns, variants }: Tiers): Grid {
  const found = variants.flatMap(({ key, name }) =>
    columns.map(({ title, cells }): { row: Cell[]; run: string | null } => {
      const cell = cells.get(key);
      return {
        run: cell?.run_id ?? null,
        row: cell
          ? [
              name,
              title.join(", "),
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
              cell.run_id,
            ]
          : [name, title.join(", "), null, null, null, null, null, null, null, null, null, null, null, null],
      };
    }),
  );
  return {
    columns: [
      "overlay, mode",
      "tier",
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
      "run",
    ].map((name) => ({ name })),
    rows: found.map(({ row }) => row),
    points: found.map(({ run }) => run),
  };
}
