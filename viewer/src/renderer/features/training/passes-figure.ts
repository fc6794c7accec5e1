/** What came through, pass by pass: a strip for each share that the prober measures, from client and server. */
import type { Data } from "plotly.js";
import type { SliceRow } from "../../../contract/training";
import { type Figure, plain } from "../../charts/figure";
import { counted } from "../../lib/counts";
import type { Mark } from "./events";
import { axisOf, brokenAt, inOrder, layoutOf, MINUTE, marked, type Span } from "./marks";

const ALL = "#56b4e9";
const NONE = "#d55e00";

export function passesFigure(rows: readonly SliceRow[], marks: readonly Mark[], span: Span): Figure {
  const shares = rows.filter(({ unit }) => unit === "ratio");
  const strips = inOrder(shares);
  const data: Partial<Data>[] = strips.map(({ name, rows: its }, at) => {
    const [edges, values] = bricks(its);
    return {
      type: "heatmap",
      x: edges.map((t) => t / MINUTE),
      y: [at - 0.42, at + 0.42],
      z: [values],
      zmin: 0,
      zmax: 1,
      colorscale: [
        [0, NONE],
        [1, ALL],
      ],
      showscale: false,
      hoverongaps: false,
      hovertemplate: `${plain(name)}<br>%{x:.2f} min: %{z:.0%}<extra></extra>`,
    } as Partial<Data>;
  });
  const key = (name: string, color: string): Partial<Data> =>
    ({
      type: "scatter",
      mode: "markers",
      name,
      x: [null],
      y: [null],
      marker: { symbol: "square", size: 12, color },
    }) as Partial<Data>;
  const whole = shares.filter(({ middle }) => middle === 1).length;
  return {
    title: "What came through, of each pass of the prober",
    data: [...data, key("all", ALL), key("nothing", NONE), ...marked(marks)],
    layout: {
      ...layoutOf(marks, span, true),
      xaxis: axisOf(span),
      yaxis: {
        tickvals: strips.map((_, at) => at),
        ticktext: strips.map(({ name }) => plain(name)),
        range: [strips.length - 0.4, -0.6],
        zeroline: false,
        showgrid: false,
      },
    },
    grid: {
      columns: [
        { name: "measure" },
        { name: "from" },
        { name: "until", unit: "s" },
        { name: "share" },
        { name: "passes" },
        { name: "reason" },
      ],
      rows: shares.map(({ measure, role, t, middle, n, reason }) => [measure, role, t, middle, n, reason]),
    },
    summary: `${counted(strips.length, "strip")}; ${whole} of ${shares.length} parts of them came through whole.`,
  };
}

/** Where each pass begins and ends, and what it gave; nothing where nobody measured, or nothing could be measured. */
function bricks(rows: readonly SliceRow[]): [edges: number[], values: (number | null)[]] {
  const edges: number[] = [];
  const values: (number | null)[] = [];
  for (const [at, row] of rows.entries()) {
    const before = rows[at - 1];
    if (before === undefined) edges.push(row.t - 1);
    else if (brokenAt(before, row)) {
      values.push(null);
      edges.push(row.t - 1);
    }
    values.push(row.middle);
    edges.push(row.t);
  }
  return [edges, values];
}

/** px. */
export const passesHeight = (rows: readonly SliceRow[]): number =>
  110 + 20 * inOrder(rows.filter(({ unit }) => unit === "ratio")).length;
