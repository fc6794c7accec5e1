/** Intervals within trials: one line per trial, aligned at each trial's start, one figure per metric. */

import type { Data, Layout, Shape } from "plotly.js";
import { isLatency } from "../../../contract/metrics";
import type { Settings } from "../../../contract/settings";
import { distinctNames } from "../../../contract/text";
import type { TimeBucketRow, TimePointRow, TimeTrialRow } from "../../../contract/time";
import { COLOURS, colour, type Figure, plain } from "../../charts/figure";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { metricWords } from "../../lib/text";
import { type Scale, scaleOf, withUnit } from "../../lib/units";
import { type Placed, variantKey } from "../../lib/variants";

export interface TimeInput {
  /** What was measured, in words. */
  what: string;
  metric: string;
  unit: string;
  /** Of this metric. */
  points: TimePointRow[];
  trials: TimeTrialRow[];
  /** All overlays and modes of the run in its order: what a colour means does not depend on what is chosen. */
  variants: readonly Placed[];
  buckets: TimeBucketRow[];
  /** s: where the time axis of all panels ends. */
  until: number;
  settings: Pick<Settings, "rateUnit" | "timeUnit">;
}

const DASHES = ["solid", "dash", "dot", "dashdot"] as const;
/** A rate holds for the whole of its interval; a latency is that of one message. */
const isMessage = isLatency;
/** More bands than these cover each other. */
export const BANDS_MOST = 8;
const SUSTAINED = "sustained rate, bucket empty";
const GUIDE = "#888888";
const OMITTED = "rgba(128,128,128,.25)";
/** How many usual distances may lie between two messages before the line is broken. */
const SILENCE = 5;

/** Of metrics whose name and unit say too little beside an axis. */
const AXES: Record<string, { title: string; unit: string; ticks: string }> = {
  loss: { title: "lost, of the datagrams of each interval", unit: "share of datagrams", ticks: ".3~%" },
  retransmits: { title: "retransmits in each interval", unit: "segments", ticks: "" },
};

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

export function timeFigure(input: TimeInput): Figure {
  const { metric, unit, points, trials, variants, settings } = input;
  const scale = scaleOf(
    unit,
    points.map(({ middle }) => middle),
    settings,
  );
  const byTrial = grouped(points);
  const drawn = trials.filter(({ trial_id }) => byTrial.has(trial_id));
  const many = drawn.length > variants.length;
  const labels = labelsOf(variants);
  const axis = AXES[metric];
  const value = axis?.ticks ? `%{y:${axis.ticks}}` : `%{y:.4~g} ${scale.unit}`;
  const named = new Set<number>();
  const data: Partial<Data>[] = [];
  let stalls = 0;
  for (const trial of drawn) {
    const rows = byTrial.get(trial.trial_id) ?? [];
    const key = variantKey(trial);
    const at = Math.max(
      0,
      variants.findIndex((variant) => variant.key === key),
    );
    const name = plain(labels[at] ?? "");
    const line = {
      color: colour(at),
      dash: DASHES[Math.floor(at / COLOURS.length) % DASHES.length] ?? "solid",
      width: many ? 1.2 : 2,
    };
    const common = {
      type: "scatter" as const,
      legendgroup: String(at),
      name,
      legendrank: at,
      showlegend: !named.has(at),
    };
    const said = `${name}, block ${trial.block}, repetition ${trial.repetition}`;
    const sliced = rows.some(({ n }) => n > 1);
    if (sliced && drawn.length <= BANDS_MOST) data.push(band(rows, scale, colour(at), String(at)));
    data.push({
      ...common,
      mode: rows.length < 2 ? "lines+markers" : "lines",
      ...path(rows, metric, scale, trial.trial_id),
      line: isMessage(metric) || sliced ? line : { ...line, shape: "hv" },
      opacity: many ? 0.85 : 1,
      hovertemplate: `${said}<br>%{x:.3~f} s: ${value}<extra></extra>`,
    } as Partial<Data>);
    named.add(at);
    const zero = unit === "bit/s" ? rows.filter(({ low }) => low === 0) : [];
    stalls += zero.length;
    if (zero.length)
      data.push({
        ...common,
        showlegend: false,
        mode: "markers",
        x: zero.map(middleOf),
        y: zero.map(() => 0),
        customdata: zero.map(() => trial.trial_id),
        marker: { symbol: "x", size: 8, color: colour(at) },
        hovertemplate: `${said}<br>%{x:.3~f} s: nothing arrived<extra></extra>`,
      } as Partial<Data>);
  }
  const omit = Math.max(0, ...drawn.map((trial) => trial.omit ?? 0));
  const blocks = new Set(drawn.map(({ block }) => block)).size;
  const unitWords = axis?.unit || scale.unit ? ` (${axis?.unit ?? scale.unit})` : "";
  return {
    title: `${capital(metricWords(metric))} within each trial${unitWords}: ${input.what}; ${counted(drawn.length, "trial")} in ${counted(blocks, "block")}`,
    data: [...data, ...guides(input, scale, omit)],
    layout: layout(input, scale, omit),
    grid: {
      columns: columns(scale),
      rows: gridRows(drawn, variants, byTrial, scale),
      points: drawn.flatMap((trial) => (byTrial.get(trial.trial_id) ?? []).map(() => trial.trial_id)),
    },
    summary: `${counted(drawn.length, "line")}, one for each trial, over ${input.until.toFixed(1)} s${stalls ? `; in ${counted(stalls, "interval")} nothing arrived` : ""}.`,
  };
}

export const bucketWords = ({ capacity, sustained }: TimeBucketRow, units: TimeInput["settings"]): string =>
  `The sender's bucket: ${withUnit(capacity, scaleOf("bytes", [capacity], units))} above ${withUnit(sustained, scaleOf("bit/s", [sustained], units))}`;

/** For a note beside the plot: trial by trial, the intervals in which nothing arrived. */
export const stallsOf = (points: TimePointRow[]): number =>
  points.filter(({ unit, low }) => unit === "bit/s" && low === 0).length;

/** No longer than a legend has room for. */
const labelsOf = (variants: readonly Placed[]): string[] =>
  distinctNames(
    variants.map(({ name }) => name),
    34,
  );

const middleOf = ({ t_start, t_end }: TimePointRow): number => (t_start + t_end) / 2;

function grouped(points: TimePointRow[]): Map<number, TimePointRow[]> {
  const found = new Map<number, TimePointRow[]>();
  for (const point of points) {
    const rows = found.get(point.trial_id);
    if (rows) rows.push(point);
    else found.set(point.trial_id, [point]);
  }
  return found;
}

/** Where nothing was measured the line is broken, never zero. */
function path(
  rows: TimePointRow[],
  metric: string,
  scale: Scale,
  trial: number,
): { x: (number | null)[]; y: (number | null)[]; customdata: number[] } {
  const x: (number | null)[] = [];
  const y: (number | null)[] = [];
  const message = isMessage(metric) || rows.some(({ n }) => n > 1);
  const usual = median(rows.slice(1).map((row, at) => row.t_start - (rows[at] as TimePointRow).t_start));
  const draw = (at: number | null, value: number | null): void => {
    x.push(at);
    y.push(value === null ? null : value / scale.factor);
  };
  rows.forEach((row, at) => {
    const before = rows[at - 1];
    const distance = before === undefined ? 0 : message ? row.t_start - before.t_start : row.t_start - before.t_end;
    if (before && distance > (message ? SILENCE * usual : usual / 2)) {
      if (!message) draw(before.t_end, before.middle);
      draw(null, null);
    }
    draw(row.t_start, row.middle);
    if (!message && at === rows.length - 1) draw(row.t_end, row.middle);
  });
  return { x, y, customdata: x.map(() => trial) };
}

/** From the smallest to the largest of each slice. */
const band = (rows: TimePointRow[], scale: Scale, fill: string, group: string): Partial<Data> =>
  ({
    type: "scatter",
    mode: "lines",
    x: [...rows.map(({ t_start }) => t_start), ...rows.map(({ t_start }) => t_start).reverse()],
    y: [...rows.map(({ high }) => high / scale.factor), ...rows.map(({ low }) => low / scale.factor).reverse()],
    fill: "toself",
    fillcolor: `${fill}33`,
    line: { width: 0 },
    legendgroup: group,
    showlegend: false,
    hoverinfo: "skip",
  }) as Partial<Data>;

const median = (values: number[]): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

/** What is no measurement, named in the legend: words in the plot would cross the lines. */
function guides({ unit, until, buckets, settings }: TimeInput, scale: Scale, omit: number): Partial<Data>[] {
  const found: Partial<Data>[] = [];
  const guide = { type: "scatter" as const, legendrank: 2000 };
  const sustained = unit === "bit/s" ? buckets[0]?.sustained : undefined;
  if (sustained !== undefined)
    found.push({
      ...guide,
      name: SUSTAINED,
      mode: "lines",
      x: [0, until],
      y: [sustained / scale.factor, sustained / scale.factor],
      line: { dash: "dot", width: 1.5, color: GUIDE },
      hovertemplate: `sustained rate of the tier, once its bucket is empty: ${withUnit(sustained, scaleOf("bit/s", [sustained], settings))}<extra></extra>`,
    } as Partial<Data>);
  if (omit > 0)
    found.push({
      ...guide,
      name: `omitted: the first ${omit} s`,
      mode: "markers",
      x: [null],
      y: [null],
      marker: { symbol: "square", size: 12, color: OMITTED },
    } as Partial<Data>);
  return found;
}

/** px, at least: as wide in every panel of a run, so that what happens at one time stands one above the other. */
function legendWidth({ variants, buckets }: TimeInput): number {
  const names = [...labelsOf(variants), ...(buckets.length ? [SUSTAINED] : [])];
  return 82 + 7 * Math.max(...names.map(({ length }) => length));
}

function layout(input: TimeInput, scale: Scale, omit: number): Partial<Layout> {
  const shapes: Partial<Shape>[] =
    omit > 0
      ? [
          {
            type: "rect",
            xref: "x",
            yref: "paper",
            x0: 0,
            x1: omit,
            y0: 0,
            y1: 1,
            fillcolor: OMITTED,
            line: { width: 0 },
          },
        ]
      : [];
  const { metric, until } = input;
  return {
    margin: { t: 12, r: legendWidth(input), b: 44, l: 72 },
    xaxis: { title: { text: "time since the trial’s start (s)" }, range: [0, until * 1.01] },
    yaxis: {
      title: { text: AXES[metric]?.title ?? plain(`${metricWords(metric)}${scale.unit ? ` (${scale.unit})` : ""}`) },
      rangemode: "tozero",
      ...(AXES[metric]?.ticks ? { tickformat: AXES[metric].ticks } : {}),
    },
    hovermode: "closest",
    legend: { orientation: "v", tracegroupgap: 0 },
    showlegend: true,
    shapes,
  };
}

const columns = (scale: Scale): Figure["grid"]["columns"] => [
  { name: "overlay" },
  { name: "block" },
  { name: "repetition" },
  { name: "trial" },
  { name: "from", unit: "s" },
  { name: "to", unit: "s" },
  { name: "median", unit: scale.unit },
  { name: "min", unit: scale.unit },
  { name: "max", unit: scale.unit },
  { name: "samples" },
];

const gridRows = (
  drawn: TimeTrialRow[],
  variants: readonly Placed[],
  byTrial: Map<number, TimePointRow[]>,
  { factor }: Scale,
): Cell[][] =>
  drawn.flatMap((trial) =>
    (byTrial.get(trial.trial_id) ?? []).map(({ t_start, t_end, low, middle, high, n }) => [
      variants.find(({ key }) => key === variantKey(trial))?.name ?? null,
      trial.block,
      trial.repetition,
      trial.trial_id,
      t_start,
      t_end,
      middle / factor,
      low / factor,
      high / factor,
      n,
    ]),
  );
