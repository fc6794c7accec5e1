/** Share of requests that took no longer: bins of one variant's trials added, as they are the same for every trial. */
import type { Data } from "plotly.js";
import type { LatencyBin } from "../../../contract/latency";
import { colour, type Figure, plain } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { dash, sideBySide } from "../../charts/panels";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { number, type Scale, scaleOf, type Units, withUnit } from "../../lib/units";
import { axisTitle, shortName } from "./percentiles";
import { blocksOf, type Latency, type Panel, type Series } from "./points";

export interface Step {
  upper: number;
  /** Requests in it and below. */
  n: number;
}

export interface Added {
  steps: Step[];
  total: number;
  lowest: number;
}

/** Bins of these trials, added. */
export function added(bins: readonly LatencyBin[], trials: ReadonlySet<number>): Added {
  const sums = new Map<number, { lower: number; n: number }>();
  for (const { trial_id, lower, upper, n } of bins) {
    if (trials.has(trial_id)) sums.set(upper, { lower, n: (sums.get(upper)?.n ?? 0) + n });
  }
  let total = 0;
  const sorted = [...sums].sort(([a], [b]) => a - b);
  const steps = sorted.map(([upper, { n }]) => {
    total += n;
    return { upper, n: total };
  });
  return { steps, total, lowest: sorted[0]?.[1].lower ?? 0 };
}

export function ecdfFigure(
  latency: Latency,
  panels: readonly Panel[],
  bins: readonly LatencyBin[],
  units: Units,
): Figure {
  const sides = panels.map(({ title, series }) => ({
    title,
    series: series.map((each) => ({
      each,
      sums: added(bins, new Set(each.profiles.map(({ trial }) => trial.trial_id))),
    })),
  }));
  const all = sides.flatMap(({ series }) => series.flatMap(({ sums }) => sums.steps.map(({ upper }) => upper)));
  const scale = scaleOf("s", all, units);
  const blocks = blocksOf(panels);
  return {
    ...sideBySide(
      sides.map(({ title, series }) => ({
        title,
        data: series.map(({ each, sums }) => curve(each, sums, scale, units)),
      })),
      { title: { text: axisTitle(latency, scale.unit) }, ...logAxis(all.map((value) => value / scale.factor)) },
      { title: { text: "share of requests" }, range: [-0.02, 1.03], tickformat: ".0%", zeroline: false },
      {},
    ),
    title: `${shortName(latency)}: share of requests that took no longer (${scale.unit}), ${latency.probe.name}${latency.sizeWords}, ${blocks > 1 ? `bins of ${blocks} blocks added` : "1 block"}`,
    grid: {
      columns: [
        { name: "between" },
        { name: "variant" },
        { name: "no longer than", unit: "s" },
        { name: "requests" },
        { name: "share", unit: "ratio" },
      ],
      rows: sides.flatMap(({ title, series }) =>
        series.flatMap(({ each, sums }) =>
          sums.steps.map(({ upper, n }): Cell[] => [title, each.variant.name, upper, n, n / sums.total]),
        ),
      ),
    },
    summary: sides
      .flatMap(({ title, series }) =>
        series.map(({ each, sums }) => {
          const half = sums.steps.find(({ n }) => n >= sums.total / 2)?.upper ?? null;
          return `${title}, ${each.variant.name}: ${sums.total} requests, half of them within ${withUnit(half, scaleOf("s", [half], units))}`;
        }),
      )
      .join("; "),
  };
}

function curve(
  { variant, profiles }: Series,
  { steps, total, lowest }: Added,
  { factor }: Scale,
  units: Units,
): Partial<Data> {
  const points = [{ upper: lowest, n: 0 }, ...steps];
  return {
    type: "scatter",
    mode: "lines",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    x: points.map(({ upper }) => upper / factor),
    y: points.map(({ n }) => n / total),
    text: points.map(({ upper, n }) =>
      [
        `<b>${plain(variant.name)}</b>, ${counted(profiles.length, "trial")}, ${total} requests`,
        `${number((n / total) * 100)} % took less than ${withUnit(upper, scaleOf("s", [upper], units))}`,
      ].join("<br>"),
    ),
    hovertemplate: "%{text}<extra></extra>",
    line: { color: colour(variant.at), width: 2, shape: "hv", dash: dash(variant.at) },
  } as Partial<Data>;
}
