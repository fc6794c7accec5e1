/** What the plots of an attempt share: their time axis, the lines of its events, and one path for each node. */
import type { Data, Layout, Shape } from "plotly.js";
import type { LevelRow, SliceRow } from "../../../contract/training";
import { plain } from "../../charts/figure";
import type { Mark } from "./events";

/** s. */
export const MINUTE = 60;
/** s before the ticket that are drawn: the baseline may be ten minutes old. */
const BEFORE = 120;
/** s between two passes from which on nothing is drawn between them; the slowest pass takes half of it. */
const SILENCE = 60;
/** s, of a pass on healthy nodes at most. */
const HANDOVER = 5;
/** Of the span, between two names above a plot: nearer ones would lie over each other. */
const APART = 0.07;
const LINE = "rgba(128,128,128,.8)";

/** s since the ticket. */
export interface Span {
  from: number;
  to: number;
}

/** Between the baseline and the fault nobody measures, however short that is. */
export const brokenAt = (before: SliceRow, row: SliceRow): boolean =>
  row.t - before.t > (before.phase === "healthy" && row.phase !== "healthy" ? HANDOVER : SILENCE);

/** until: where the axis ends at least, as the clock says. */
export function spanOf(rows: readonly SliceRow[], events: readonly Pick<Mark, "t">[], until = 0): Span {
  const times = [...rows, ...events].map(({ t }) => t);
  return {
    from: times.reduce((least, t) => Math.max(-BEFORE, Math.min(least, t)), 0),
    to: times.reduce((most, t) => Math.max(most, t), Math.max(until, MINUTE / 2)),
  };
}

export const axisOf = ({ from, to }: Span): Partial<Layout["xaxis"]> => {
  const room = 0.015 * (to - from);
  return {
    title: { text: "minutes since the ticket" },
    range: [(from - room) / MINUTE, (to + room) / MINUTE],
    zeroline: false,
  };
};

export interface Path {
  name: string;
  role: SliceRow["role"];
  rows: SliceRow[];
}

export const pathName = ({ measure, role }: Pick<SliceRow | LevelRow, "measure" | "role">): string =>
  `${measure}, from the ${role}`;

/** Each measure from each node, in the order of the rows. */
export function inOrder(rows: readonly SliceRow[]): Path[] {
  const found = new Map<string, Path>();
  for (const row of rows) {
    const name = pathName(row);
    const path = found.get(name);
    if (path) path.rows.push(row);
    else found.set(name, { name, role: row.role, rows: [row] });
  }
  return [...found.values()];
}

/** named: above the plot, the last of those that would lie over each other. */
export function layoutOf(marks: readonly Mark[], span: Span, named: boolean): Partial<Layout> {
  return {
    margin: { t: named ? 30 : 8, r: named ? 40 : 12, b: 44, l: 64 },
    shapes: marks.map(
      ({ t, short }): Partial<Shape> => ({
        type: "line",
        x0: t / MINUTE,
        x1: t / MINUTE,
        y0: 0,
        y1: 1,
        yref: "paper",
        line: { width: 1, color: LINE, dash: short === "" ? "dot" : "solid" },
      }),
    ),
    annotations: named
      ? apart(marks, span).map(({ t, short }) => ({
          text: plain(short, 20),
          x: t / MINUTE,
          y: 1,
          yref: "paper",
          yanchor: "bottom",
          showarrow: false,
        }))
      : [],
    // An axis from 0 to 1 whatever the values are, for what has none.
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    hovermode: "closest",
    showlegend: true,
    legend: named
      ? { orientation: "h", y: -0.3, yanchor: "top", x: 0 }
      : { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
  };
}

function apart(marks: readonly Mark[], { from, to }: Span): Mark[] {
  const kept: Mark[] = [];
  for (const mark of marks.filter(({ short }) => short !== "").reverse()) {
    const after = kept[0];
    if (after === undefined || after.t - mark.t >= APART * (to - from)) kept.unshift(mark);
  }
  return kept;
}

/** A mark at the top of each event's line, that says what it was. */
export const marked = (marks: readonly Mark[]): Partial<Data>[] =>
  marks.length
    ? [
        {
          type: "scatter",
          mode: "markers",
          showlegend: false,
          x: marks.map(({ t }) => t / MINUTE),
          y: marks.map(() => 0.97),
          yaxis: "y2",
          text: marks.map(({ words }) => plain(words, 120)),
          marker: { symbol: "triangle-down", size: 8, color: LINE },
          hovertemplate: "%{x:.2f} min: %{text}<extra></extra>",
        } as Partial<Data>,
      ]
    : [];
