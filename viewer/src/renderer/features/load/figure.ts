/** One metric against the UDP load that was really offered, or the size of datagrams: a dot for each trial, a line through the medians of blocks. */
import type { Data, Layout } from "plotly.js";
import type { LoadTrial } from "../../../contract/load";
import { METRICS } from "../../../contract/terms";
import { colour, type Figure, plain, symbol } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { legendFor } from "../../charts/panels";
import { counted } from "../../lib/counts";
import { number, type Scale, scaleOf, withUnit } from "../../lib/units";
import { lossAxis, lossShown } from "./loss-axis";
import { contradicts, isOff, type Load, type LoadMetric, type LoadSeries, percent, stepOf } from "./points";
import { type LoadOptions, loadGrid, loadSummary, NAMES, shownOf } from "./table";

export function loadFigure(load: Load, options: LoadOptions): Figure {
  const { metric, normalised } = options;
  const drawn = load.series.filter(({ variant }) => !normalised || !variant.isHost);
  const trials = drawn.flatMap((series) => series.trials);
  const offered = xScale(load, trials, options);
  const values = trials.map((trial) => shownOf(load, options, trial));
  const scale: Scale = normalised ? { unit: "", factor: 1 } : scaleOf(METRICS[metric].unit, values, options.units);
  const data = drawn.flatMap((series) => [
    ...lines(load, series, options, offered, scale),
    dots(load, series, options, offered, scale),
    legendEntry(series),
  ]);
  if (metric === "goodput" && !normalised && load.against === "load") data.unshift(...diagonal(trials, offered, scale));
  const blocks = counted(load.blocks, "block");
  return {
    title: `${titleOf(metric, normalised, scale)} against ${load.against === "load" ? "offered UDP load" : "datagram size"}, ${blocks}`,
    data,
    layout: layoutOf(load, options, offered, scale, values),
    grid: loadGrid(load, drawn, options),
    summary: loadSummary(load, drawn, options),
  };
}

/** Bytes stand as they are: people know 1472, not 1.472 kB. */
const xScale = (load: Load, trials: readonly LoadTrial[], { units }: LoadOptions): Scale =>
  load.against === "datagram"
    ? { unit: "bytes", factor: 1 }
    : scaleOf(
        "bit/s",
        trials.map((trial) => trial.offered),
        units,
      );

const xOf = (load: Load, trial: LoadTrial): number | null =>
  load.against === "load" ? trial.offered : stepOf("datagram", trial);

function titleOf(metric: LoadMetric, normalised: boolean, { unit }: Scale): string {
  if (!normalised) return `${NAMES[metric]} (${metric === "loss" ? "share of datagrams" : unit})`;
  return metric === "loss"
    ? "Loss less the host's of the same block (points)"
    : `${NAMES[metric]} as ratio to the host of the same block`;
}

/** Filled, whatever a variant's first dot is. */
const legendEntry = ({ variant }: LoadSeries): Partial<Data> =>
  ({
    type: "scatter",
    mode: "lines+markers",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    x: [null],
    y: [null],
    line: { color: colour(variant.at), width: 2 },
    marker: { color: colour(variant.at), symbol: symbol(variant.at), size: 8 },
  }) as Partial<Data>;

function dots(
  load: Load,
  { variant, trials }: LoadSeries,
  options: LoadOptions,
  offered: Scale,
  scale: Scale,
): Partial<Data> {
  const shown = trials.filter((trial) => xOf(load, trial) !== null && shownOf(load, options, trial) !== null);
  return {
    type: "scatter",
    mode: "markers",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    showlegend: false,
    x: shown.map((trial) => (xOf(load, trial) as number) / offered.factor),
    y: shown.map((trial) => lossShown(options, shownOf(load, options, trial) as number) / scale.factor),
    customdata: shown.map((trial) => trial.trial_id),
    text: shown.map((trial) => hover(load, variant.name, trial, options)),
    hovertemplate: "%{text}<extra></extra>",
    marker: {
      color: colour(variant.at),
      size: 8,
      symbol: shown.map((trial) => `${symbol(variant.at)}${isOff(trial) ? "-open" : ""}`),
      line: { width: 1.5, color: colour(variant.at) },
    },
  } as Partial<Data>;
}

function hover(load: Load, name: string, trial: LoadTrial, options: LoadOptions): string {
  const rate = (value: number | null) => withUnit(value, scaleOf("bit/s", [value], options.units));
  const off = trial.offered === null ? 0 : trial.offered / trial.asked - 1;
  const against = options.normalised ? shownOf(load, options, trial) : null;
  return [
    `<b>${plain(name)}</b>, block ${trial.block}`,
    `offered ${rate(trial.offered)}${isOff(trial) ? `, ${number(Math.abs(off) * 100)} % ${off < 0 ? "less" : "more"} than asked` : ""}; asked ${rate(trial.asked)}`,
    `delivered ${rate(trial.goodput)}`,
    `lost ${percent(trial.loss)}${contradicts(trial) ? ", up to the last datagram that arrived: more never came" : ""}`,
    `jitter ${withUnit(trial.jitter, scaleOf("s", [trial.jitter], options.units))}`,
    ...(against === null
      ? []
      : [
          options.metric === "loss"
            ? `${number(against * 100)} points from the host's`
            : `${number(against)} of the host's`,
        ]),
    "click: its evidence",
  ].join("<br>");
}

/** Through the medians over blocks, in the order of what was asked for; what is missing is a gap. */
function lines(load: Load, series: LoadSeries, options: LoadOptions, offered: Scale, scale: Scale): Partial<Data>[] {
  const { metric, normalised } = options;
  if (normalised && metric === "loss") return blockLines(load, series, options, offered);
  const { variant, medians } = series;
  const points = load.steps.map((step) => {
    const at = medians.get(step);
    const row = at?.[metric];
    const y = (normalised ? row?.ratio : row?.median) ?? null;
    const x = load.against === "load" ? (at?.offered?.median ?? step) : step;
    return { x, y, low: row?.interval_low ?? null, high: row?.interval_high ?? null };
  });
  const intervals = normalised && points.some(({ low }) => low !== null);
  const above = (end: number | null, y: number | null): number => (end === null || y === null ? 0 : Math.abs(end - y));
  return [
    {
      type: "scatter",
      mode: "lines",
      name: plain(variant.name),
      legendgroup: String(variant.at),
      showlegend: false,
      hoverinfo: "skip",
      connectgaps: false,
      x: points.map(({ x }) => x / offered.factor),
      y: points.map(({ y }) => (y === null ? null : lossShown(options, y) / scale.factor)),
      line: { color: colour(variant.at), width: 2 },
      ...(intervals
        ? {
            error_y: {
              type: "data",
              symmetric: false,
              array: points.map(({ y, high }) => above(high, y)),
              arrayminus: points.map(({ y, low }) => above(low, y)),
              color: colour(variant.at),
              thickness: 1.5,
              width: 4,
            },
          }
        : {}),
    } as Partial<Data>,
  ];
}

/** Of differences the tables have no median: each block has a line of its own. */
function blockLines(
  load: Load,
  { variant, trials }: LoadSeries,
  options: LoadOptions,
  offered: Scale,
): Partial<Data>[] {
  return [...new Set(trials.map(({ block }) => block))].map((block) => {
    const points = load.steps.map((step) => {
      const trial = trials.find((each) => each.block === block && stepOf(load.against, each) === step);
      const x = (trial && xOf(load, trial)) ?? step;
      return { x: x / offered.factor, y: trial ? shownOf(load, options, trial) : null };
    });
    return {
      type: "scatter",
      mode: "lines",
      legendgroup: String(variant.at),
      showlegend: false,
      hoverinfo: "skip",
      connectgaps: false,
      x: points.map(({ x }) => x),
      y: points.map(({ y }) => y),
      line: { color: colour(variant.at), width: 1 },
    } as Partial<Data>;
  });
}

/** Enough that the line looks smooth where one axis is logarithmic and the other is not. */
const ON_DIAGONAL = 60;

/** Where all that was offered arrives; each axis has a unit of its own. */
function diagonal(trials: readonly LoadTrial[], offered: Scale, delivered: Scale): Partial<Data>[] {
  const known = trials.flatMap(({ offered: rate }) => (rate === null || rate <= 0 ? [] : [rate]));
  if (known.length === 0) return [];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  // By equal factors, as x is logarithmic.
  const rates = Array.from({ length: ON_DIAGONAL }, (_, at) => least * (most / least) ** (at / (ON_DIAGONAL - 1)));
  return [
    {
      type: "scatter",
      mode: "lines",
      name: "all that is offered",
      x: rates.map((rate) => rate / offered.factor),
      y: rates.map((rate) => rate / delivered.factor),
      hoverinfo: "skip",
      line: { color: "#888888", width: 1, dash: "dot" },
    } as Partial<Data>,
  ];
}

function layoutOf(
  load: Load,
  { metric, normalised, rateAxis, lossScale }: LoadOptions,
  offered: Scale,
  scale: Scale,
  values: readonly (number | null)[],
): Partial<Layout> {
  const most = Math.max(metric === "loss" ? 0.01 : 1, ...values.map((value) => Math.abs(value ?? 0)));
  const y = normalised
    ? metric === "loss"
      ? { title: { text: "points of loss" }, tickformat: ".3~%", range: [-1.15 * most, 1.15 * most], zeroline: true }
      : { title: { text: "ratio to the host" }, range: [0, 1.1 * most], zeroline: false }
    : metric === "loss"
      ? { title: { text: "lost, of what was sent" }, ...lossAxis(lossScale, values) }
      : {
          title: { text: `${NAMES[metric].toLowerCase()} (${scale.unit})` },
          ...(metric === "goodput" && rateAxis === "log"
            ? logAxis(values.map((value) => value && value / scale.factor))
            : { rangemode: "tozero" }),
        };
  const xs = load.series.flatMap(({ trials }) => trials.map((trial) => xOf(load, trial)));
  return {
    xaxis: {
      title: {
        text:
          load.against === "load" ? `offered: what was really sent (${offered.unit})` : "payload of a datagram (bytes)",
      },
      ...logAxis(xs.map((x) => x && x / offered.factor)),
    },
    yaxis: y,
    margin: { t: 8, r: 12, b: 48, l: 64 },
    legend: legendFor(load.series.length),
    showlegend: true,
    hovermode: "closest",
    ...(normalised && metric !== "loss" && load.series.length
      ? {
          shapes: [
            {
              type: "line",
              xref: "paper",
              x0: 0,
              x1: 1,
              y0: 1,
              y1: 1,
              line: { color: "#888888", width: 1, dash: "dot" },
            },
          ],
        }
      : {}),
  } as Partial<Layout>;
}
