/** One measure over an attempt's time, from client and server, beside what it is on the healthy nodes. */
import type { Data } from "plotly.js";
import type { Settings } from "../../../contract/settings";
import type { LevelRow, SliceRow } from "../../../contract/training";
import { colour, type Figure, plain } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { counted } from "../../lib/counts";
import { metricWords } from "../../lib/text";
import { scaleOf } from "../../lib/units";
import type { Mark } from "./events";
import { axisOf, brokenAt, inOrder, layoutOf, MINUTE, marked, type Path, type Span } from "./marks";

const ROLES = ["client", "server"] as const;
/** Times that span more than this factor: what is usual would lie on the axis. */
const LOG_FROM = 20;

export interface MeasureInput {
  measure: string;
  /** Of this measure. */
  rows: readonly SliceRow[];
  levels: readonly LevelRow[];
  marks: readonly Mark[];
  span: Span;
  settings: Pick<Settings, "rateUnit" | "timeUnit">;
}

export function measureFigure({ measure, rows, levels, marks, span, settings }: MeasureInput): Figure {
  const unit = rows[0]?.unit ?? "s";
  const healthy = levels.filter(({ level, value }) => level === "healthy" && value !== null);
  const values = [...rows.map(({ middle }) => middle), ...healthy.map(({ value }) => value)];
  const scale = scaleOf(unit, values, settings);
  const known = values.flatMap((value) => (value !== null && value > 0 ? [value] : []));
  const log = unit === "s" && known.length > 0 && Math.max(...known) / Math.min(...known) > LOG_FROM;
  const shown = (value: number | null): number | null =>
    value === null || (log && value <= 0) ? null : value / scale.factor;
  const data = inOrder(rows).flatMap(({ role, rows: its }): Partial<Data>[] => {
    const at = ROLES.indexOf(role);
    const common = { type: "scatter" as const, name: role, legendgroup: role };
    const none = its.filter(({ middle }) => middle === null);
    const [x, y] = line(its);
    return [
      {
        ...common,
        mode: "lines",
        x,
        y: y.map(shown),
        line: { color: colour(at), width: 1.8, shape: "vh", dash: at ? "dash" : "solid" },
        hovertemplate: `from the ${role}<br>%{x:.2f} min: %{y:.4~g} ${scale.unit}<extra></extra>`,
      } as Partial<Data>,
      ...(none.length ? [missing(none, at)] : []),
      ...healthy
        .filter((level) => level.role === role)
        .map(
          ({ value }) =>
            ({
              ...common,
              name: `${role}, healthy`,
              mode: "lines",
              x: [span.from / MINUTE, span.to / MINUTE],
              y: [shown(value), shown(value)],
              line: { color: colour(at), width: 1, dash: "dot" },
              hovertemplate: `healthy, from the ${role}: %{y:.4~g} ${scale.unit}<extra></extra>`,
            }) as Partial<Data>,
        ),
    ];
  });
  const lost = rows.filter(({ middle }) => middle === null).length;
  const title = `${measure}${scale.unit ? ` (${scale.unit})` : ""}: ${rows[0]?.description ?? ""}`;
  return {
    title,
    data: [...data, ...marked(marks)],
    layout: {
      ...layoutOf(marks, span, false),
      xaxis: axisOf(span),
      yaxis: {
        title: { text: plain(`${metricWords(measure)} (${scale.unit})`) },
        ...(log ? logAxis(values.map(shown)) : { rangemode: "tozero" as const }),
      },
    },
    grid: {
      columns: [
        { name: "from" },
        { name: "until", unit: "s" },
        { name: "median", unit: scale.unit },
        { name: "min", unit: scale.unit },
        { name: "max", unit: scale.unit },
        { name: "passes" },
        { name: "reason" },
      ],
      rows: rows.map(({ role, t, middle, low, high, n, reason }) => [
        role,
        t,
        shown(middle),
        shown(low),
        shown(high),
        n,
        reason,
      ]),
    },
    summary: `${counted(rows.length, "point")} over ${((span.to - span.from) / MINUTE).toFixed(1)} minutes${lost ? `; at ${lost} nothing could be measured` : ""}.`,
  };
}

/** A value holds for the whole of its pass, which ended then. Where nothing was measured the line is broken, never zero. */
function line(rows: Path["rows"]): [x: (number | null)[], y: (number | null)[]] {
  const x: (number | null)[] = [];
  const y: (number | null)[] = [];
  for (const [at, row] of rows.entries()) {
    const before = rows[at - 1];
    if (before && brokenAt(before, row)) {
      x.push(null);
      y.push(null);
    }
    x.push(row.t / MINUTE);
    y.push(row.middle);
  }
  return [x, y];
}

const missing = (rows: readonly SliceRow[], at: number): Partial<Data> =>
  ({
    type: "scatter",
    mode: "markers",
    name: "not measured",
    showlegend: at === 0,
    legendgroup: "missing",
    x: rows.map(({ t }) => t / MINUTE),
    y: rows.map(() => 0.03 + 0.05 * at),
    yaxis: "y2",
    text: rows.map(({ reason }) => plain(reason ?? "no reason was stored", 120)),
    marker: { symbol: "x", size: 7, color: colour(at) },
    hovertemplate: "%{x:.2f} min: %{text}<extra></extra>",
  }) as Partial<Data>;
