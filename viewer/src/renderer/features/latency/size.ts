/** Median and 99th percentile against the size of requests. */
import type { Data } from "plotly.js";
import { colour, type Figure, plain, symbol } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { sideBySide } from "../../charts/panels";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { type Scale, scaleOf, type Units, withUnit } from "../../lib/units";
import { axisTitle, percentile, shortName } from "./percentiles";
import { blocksOf, type Latency, overBlocks, type Panel, type Profile, quantileOf, type Series } from "./points";

const SHOWN = [0.5, 0.99] as const;
const words = (quantile: number): string => (quantile === 0.5 ? "median" : percentile(quantile));

/** From the summary where every request was kept: the bins of all sizes are not read for this. */
const known = (profile: Profile, quantile: number): number | null => {
  const { trial } = profile;
  if (trial.basis !== "interval") return quantileOf(profile, quantile);
  return (trial.n ?? 0) * (1 - quantile) < 1 - 1e-9 ? null : quantile === 0.5 ? trial.p50 : trial.p99;
};

/** panels: of all sizes. */
export function sizesFigure(latency: Latency, panels: readonly Panel[], units: Units): Figure {
  const all = panels.flatMap(({ series }) =>
    series.flatMap(({ profiles }) => profiles.flatMap((profile) => SHOWN.map((quantile) => known(profile, quantile)))),
  );
  const scale = scaleOf("s", all, units);
  const { sizes } = latency;
  return {
    ...sideBySide(
      panels.map(({ title, series }) => ({
        title,
        data: series.flatMap((each) =>
          SHOWN.flatMap((quantile) => [line(each, sizes, quantile, scale), dots(each, quantile, scale, units)]),
        ),
      })),
      {
        title: { text: `request size (bytes)` },
        ...logAxis(sizes),
        ...(sizes.length <= 8
          ? { tickvals: sizes, ticktext: sizes.map(String), tickangle: sizes.length > 4 ? -45 : 0 }
          : {}),
      },
      {
        title: { text: axisTitle(latency, scale.unit) },
        ...logAxis(all.map((value) => value && value / scale.factor)),
      },
      {},
    ),
    title: `Median (filled) and 99 % (hollow) of ${shortName(latency)} (${scale.unit}) by request size, ${latency.probe.name}, ${counted(blocksOf(panels), "block")}`,
    grid: gridOf(panels),
    summary: summaryOf(panels, sizes, units),
  };
}

const ofSize = ({ profiles }: Series, size: number): Profile[] => profiles.filter(({ trial }) => trial.size === size);

function line(series: Series, sizes: readonly number[], quantile: number, { factor }: Scale): Partial<Data> {
  const values = sizes.map((size) => overBlocks(ofSize(series, size), (profile) => known(profile, quantile)).value);
  return {
    type: "scatter",
    mode: "lines",
    legendgroup: String(series.variant.at),
    showlegend: false,
    hoverinfo: "skip",
    connectgaps: false,
    x: [...sizes],
    y: values.map((value) => (value === null ? null : value / factor)),
    line: { color: colour(series.variant.at), width: 2, dash: quantile === 0.5 ? "solid" : "dot" },
  } as Partial<Data>;
}

function dots({ variant, profiles }: Series, quantile: number, { factor }: Scale, units: Units): Partial<Data> {
  const shown = profiles.filter((profile) => profile.trial.size !== null && known(profile, quantile) !== null);
  return {
    type: "scatter",
    mode: "markers",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    showlegend: quantile === 0.5,
    x: shown.map(({ trial }) => trial.size),
    y: shown.map((profile) => (known(profile, quantile) as number) / factor),
    customdata: shown.map(({ trial }) => trial.trial_id),
    text: shown.map((profile) => {
      const value = known(profile, quantile);
      return [
        `<b>${plain(variant.name)}</b>, block ${profile.trial.block}, ${profile.trial.size} bytes`,
        `${words(quantile)}: ${withUnit(value, scaleOf("s", [value], units))}`,
        "click: its evidence",
      ].join("<br>");
    }),
    hovertemplate: "%{text}<extra></extra>",
    marker: {
      color: colour(variant.at),
      symbol: `${symbol(variant.at)}${quantile === 0.5 ? "" : "-open"}`,
      size: 8,
      line: { width: 1.5, color: colour(variant.at) },
    },
  } as Partial<Data>;
}

function gridOf(panels: readonly Panel[]): Figure["grid"] {
  const rows: Cell[][] = [];
  const points: unknown[] = [];
  for (const { title, series } of panels) {
    for (const { variant, profiles } of series) {
      for (const profile of [...profiles].sort(
        (a, b) => (a.trial.size ?? 0) - (b.trial.size ?? 0) || a.trial.block - b.trial.block,
      )) {
        rows.push([
          title,
          variant.name,
          profile.trial.size,
          profile.trial.block,
          known(profile, 0.5),
          known(profile, 0.99),
        ]);
        points.push(profile.trial.trial_id);
      }
    }
  }
  return {
    columns: [
      { name: "between" },
      { name: "variant" },
      { name: "request size", unit: "bytes" },
      { name: "block" },
      { name: "median", unit: "s" },
      { name: "99 %", unit: "s" },
    ],
    rows,
    points,
  };
}

function summaryOf(panels: readonly Panel[], sizes: readonly number[], units: Units): string {
  const ends = [sizes[0], sizes[sizes.length - 1]] as number[];
  return panels
    .flatMap(({ title, series }) =>
      series.map((each) => {
        const said = ends.map((size) => {
          const { value } = overBlocks(ofSize(each, size), (profile) => known(profile, 0.5));
          return `${withUnit(value, scaleOf("s", [value], units))} at ${size} bytes`;
        });
        return `${title}, ${each.variant.name}: median ${said.join(", ")}`;
      }),
    )
    .join("; ");
}
