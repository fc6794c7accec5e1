/** Percentile curves of one request size: each trial its own line, and the median over blocks of the trials' percentiles. */
import type { Data } from "plotly.js";
import { colour, type Figure, plain, symbol } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { dash, sideBySide } from "../../charts/panels";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { number, type Scale, scaleOf, type Units, withUnit } from "../../lib/units";
import {
  blocksOf,
  type Latency,
  METRICS,
  overBlocks,
  type Panel,
  type Profile,
  quantileOf,
  type Series,
} from "./points";

/** Read from bins, and the tools' own that are drawn. */
export const QUANTILES = [0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999] as const;
const TICKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999] as const;

/** As many nines as there are: each decade of slow requests is as wide as the next. */
export const nines = (quantile: number): number => -Math.log10(1 - quantile);

export const percentile = (quantile: number): string => `${Number((quantile * 100).toPrecision(8))} %`;

export const axisTitle = (latency: Latency, unit: string): string =>
  `${latency.probe.metric ? METRICS[latency.probe.metric] : "latency"} (${unit})`;

export const shortName = (latency: Latency): string =>
  latency.probe.metric === "latency_one_way"
    ? "One-way latency"
    : latency.probe.metric === "latency_transaction"
      ? "Transaction time"
      : "RTT";

export function percentilesFigure(latency: Latency, panels: readonly Panel[], units: Units): Figure {
  const all = panels.flatMap(({ series }) =>
    series.flatMap(({ profiles }) => profiles.flatMap(({ points }) => points)),
  );
  const scale = scaleOf(
    "s",
    all.map(({ value }) => value),
    units,
  );
  const several = blocksOf(panels) > 1;
  const most = Math.max(nines(0.9), ...all.map(({ quantile }) => nines(quantile)));
  const least = Math.min(nines(0.5), ...all.map(({ quantile }) => nines(quantile)));
  const ticks = TICKS.filter((quantile) => nines(quantile) >= least && nines(quantile) <= most + 0.3);
  const drawn = sideBySide(
    panels.map(({ title, series }) => ({
      title,
      data: series.flatMap((each) => [
        ...each.profiles.map((profile) => trialLine(each, profile, several, scale, units)),
        ...(several ? [medianLine(each, scale, units)] : []),
      ]),
    })),
    {
      title: { text: "percentile of requests" },
      tickvals: ticks.map(nines),
      ticktext: ticks.map(percentile),
      range: [least - 0.08, most + 0.12],
      zeroline: false,
    },
    { title: { text: axisTitle(latency, scale.unit) }, ...logAxis(all.map(({ value }) => value / scale.factor)) },
    {},
  );
  return {
    ...drawn,
    title: `${shortName(latency)} percentiles (${scale.unit}), ${latency.probe.name}${latency.sizeWords}, ${counted(blocksOf(panels), "block")}`,
    grid: gridOf(panels),
    summary: summaryOf(panels, units),
  };
}

function trialLine(
  { variant }: Series,
  { trial, points }: Profile,
  several: boolean,
  scale: Scale,
  units: Units,
): Partial<Data> {
  const binned = trial.basis === "interval";
  return {
    type: "scatter",
    mode: binned ? "lines" : "lines+markers",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    showlegend: !several,
    opacity: several ? 0.35 : 1,
    x: points.map(({ quantile }) => nines(quantile)),
    y: points.map(({ value }) => value / scale.factor),
    customdata: points.map(() => trial.trial_id),
    text: points.map(({ quantile, value }) =>
      [
        `<b>${plain(variant.name)}</b>, block ${trial.block}`,
        `${percentile(quantile)} of its requests took less than ${withUnit(value, scaleOf("s", [value], units))}`,
        binned ? `${trial.n} requests, in bins 1.2 % wide` : "percentile as the tool says it",
        "click: its evidence",
      ].join("<br>"),
    ),
    hovertemplate: "%{text}<extra></extra>",
    line: {
      color: colour(variant.at),
      width: several ? 1 : 2,
      shape: binned ? "hv" : "linear",
      dash: binned ? dash(variant.at) : "solid",
    },
    marker: { color: colour(variant.at), symbol: symbol(variant.at), size: several ? 5 : 8 },
  } as Partial<Data>;
}

/** Percentiles that these trials know. */
export const known = (profiles: readonly Profile[]): number[] =>
  profiles.some(({ trial }) => trial.basis === "interval")
    ? QUANTILES.filter((quantile) => profiles.every((profile) => quantileOf(profile, quantile) !== null))
    : [...new Set(profiles.flatMap(({ points }) => points.map(({ quantile }) => quantile)))].sort((a, b) => a - b);

function medianLine({ variant, profiles }: Series, scale: Scale, units: Units): Partial<Data> {
  const points = known(profiles).map((quantile) => ({
    quantile,
    ...overBlocks(profiles, (profile) => quantileOf(profile, quantile)),
  }));
  return {
    type: "scatter",
    mode: "lines+markers",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    x: points.map(({ quantile }) => nines(quantile)),
    y: points.map(({ value }) => (value === null ? null : value / scale.factor)),
    text: points.map(
      ({ quantile, value, blocks }) =>
        `<b>${plain(variant.name)}</b><br>${percentile(quantile)}: ${withUnit(value, scaleOf("s", [value], units))}<br>median over ${counted(blocks, "block")} of each trial's percentile`,
    ),
    hovertemplate: "%{text}<extra></extra>",
    line: { color: colour(variant.at), width: 2.5 },
    marker: { color: colour(variant.at), symbol: symbol(variant.at), size: 8 },
  } as Partial<Data>;
}

function gridOf(panels: readonly Panel[]): Figure["grid"] {
  const rows: Cell[][] = [];
  const points: unknown[] = [];
  for (const { title, series } of panels) {
    for (const { variant, profiles } of series) {
      for (const profile of profiles) {
        for (const quantile of known([profile])) {
          rows.push([title, variant.name, profile.trial.block, quantile, quantileOf(profile, quantile)]);
          points.push(profile.trial.trial_id);
        }
      }
      for (const quantile of known(profiles)) {
        const { value, blocks } = overBlocks(profiles, (profile) => quantileOf(profile, quantile));
        if (blocks < 2) continue;
        rows.push([title, variant.name, `median over ${blocks} blocks`, quantile, value]);
        points.push(null);
      }
    }
  }
  return {
    columns: [
      { name: "between" },
      { name: "variant" },
      { name: "block" },
      { name: "quantile" },
      { name: "latency", unit: "s" },
    ],
    rows,
    points,
  };
}

function summaryOf(panels: readonly Panel[], units: Units): string {
  const words = panels.flatMap(({ title, series }) =>
    series.flatMap(({ variant, profiles }) => {
      const said = [0.5, 0.99].flatMap((quantile) => {
        const { value } = overBlocks(profiles, (profile) => quantileOf(profile, quantile));
        return value === null ? [] : [`${number(quantile * 100)} % ${withUnit(value, scaleOf("s", [value], units))}`];
      });
      return said.length ? [`${title}, ${variant.name}: ${said.join(", ")}`] : [];
    }),
  );
  return `${words.join("; ")}.`;
}
