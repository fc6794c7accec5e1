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
const LINE = "rgba(128,128,128,.8)";

/** s since the ticket. */
export interface Span {
  from: number;
  to: number;
}

export const brokenAt = (before: number, t: number): boolean => t - before > SILENCE;

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

/** named: beside their lines, above the plot. */
export function layoutOf(marks: readonly Mark[], named: boolean): Partial<Layout> {
  return {
    margin: { t: 30, r: 12, b: 44, l: 64 },
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
      ? marks.flatMap(({ t, short }) =>
          short === ""
            ? []
            : [
                {
                  text: plain(short, 20),
                  x: t / MINUTE,
                  y: 1,
                  yref: "paper" as const,
                  yanchor: "bottom" as const,
                  showarrow: false,
                },
              ],
        )
      : [],
    // An axis from 0 to 1 whatever the values are, for what has none.
    yaxis2: { overlaying: "y", range: [0, 1], visible: false, fixedrange: true },
    hovermode: "closest",
    showlegend: true,
    legend: { orientation: "h", y: -0.3, yanchor: "top", x: 0 },
  };
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
