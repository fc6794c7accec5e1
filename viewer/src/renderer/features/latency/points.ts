/** Latency: rows of one probe as what the plots show. */
import type { LatencyBin, LatencyMetric, LatencyQuantile, LatencyTrial } from "../../../contract/latency";
import { loopOf } from "../../../contract/metrics";
import type { RunRow } from "../../../contract/run";
import { endsDimension, endsKey, endsWords } from "../../lib/ends";
import { type Choice, type Dimension, narrowed } from "../../lib/narrow";
import { clean } from "../../lib/text";
import { type Placed, placedVariants, variantKey, zonesOf } from "../../lib/variants";

export const METRICS: Readonly<Record<LatencyMetric, string>> = {
  latency_rtt: "round-trip time",
  latency_one_way: "one-way latency: half a round trip",
  latency_transaction: "connection, request and answer together",
};

/** Every place beside the others. */
export const ALL = "*";
const MOST_PANELS = 3;

export interface Point {
  quantile: number;
  value: number;
}

/** A trial and its own percentiles, ascending: the tool's, or read from its bins. */
export interface Profile {
  trial: LatencyTrial;
  points: Point[];
}

export interface Series {
  variant: Placed;
  profiles: Profile[];
}

export interface Panel {
  /** Where, in words. */
  title: string;
  series: Series[];
}

export interface Probe {
  tool: string;
  loop: "closed" | "open" | null;
  metric: LatencyMetric | null;
  /** Such as netperf TCP_RR. */
  name: string;
  /** Every request is known, not only percentiles. */
  hasBins: boolean;
}

const loopWords = (tool: string): string => (loopOf(tool) ? ` (${loopOf(tool)} loop)` : "");

function probeName(tool: string, test: string | null, protocol: string | null, rate: number | null): string {
  const what = [test, protocol].filter((word) => word !== null).map((word) => clean(String(word), 30).toUpperCase());
  return [clean(tool, 30), ...what, ...(rate === null ? [] : [`${rate} messages/s`])].join(" ");
}

const PROBE: Dimension<LatencyTrial> = {
  name: "probe",
  title: "Measured by",
  of: ({ tool, test, protocol, messages_per_second }) => JSON.stringify([tool, test, protocol, messages_per_second]),
  label: (key) => {
    const [tool, test, protocol, rate] = JSON.parse(key) as [string, string | null, string | null, number | null];
    return `${probeName(tool, test, protocol, rate)}${loopWords(tool)}`;
  },
};

const SIZE: Dimension<LatencyTrial> = {
  name: "size",
  title: "Request size",
  of: ({ size }) => String(size ?? ""),
  label: (key) => (key === "" ? "the tool's own" : `${key} bytes`),
};

export interface Latency {
  choices: Choice[];
  probe: Probe;
  /** Trials of the probe in the places chosen, of all sizes, also those that failed. */
  rows: LatencyTrial[];
  places: string[];
  size: string;
  /** For titles: nothing where the tool was not told. */
  sizeWords: string;
  sizes: number[];
}

export function latencyOf(
  trials: readonly LatencyTrial[],
  run: Pick<RunRow, "nodes">,
  wanted: Readonly<Record<string, string>>,
): Latency {
  const zones = zonesOf(run);
  const probes = narrowed(trials, [PROBE], wanted);
  const places = [...new Set(probes.rows.map(endsKey))].sort(endsDimension(zones).order);
  const together = places.length > 1 && places.length <= MOST_PANELS;
  const options = [
    ...(together ? [{ key: ALL, label: places.length === 2 ? "both, side by side" : "all, side by side" }] : []),
    ...places.map((key) => ({ key, label: endsWords(key, zones) })),
  ];
  const chosen = options.find(({ key }) => key === wanted.ends)?.key ?? options[0]?.key ?? "";
  const rows = probes.rows.filter((row) => chosen === ALL || endsKey(row) === chosen);
  const sizes = narrowed(rows, [SIZE], wanted);
  const first = probes.rows[0];
  const measured = probes.rows.find(({ metric }) => metric !== null);
  const tool = first?.tool ?? "";
  const size = sizes.choices[0];
  return {
    choices: [...probes.choices, { name: "ends", title: "Between", options, chosen }, ...sizes.choices],
    probe: {
      tool,
      loop: loopOf(tool),
      metric: measured?.metric ?? null,
      name: first ? probeName(tool, first.test, first.protocol, first.messages_per_second) : "",
      hasBins: probes.rows.some(({ basis }) => basis === "interval"),
    },
    rows,
    places: chosen === ALL ? places : [chosen],
    size: size?.chosen ?? "",
    sizeWords: size?.chosen ? `, ${size.chosen} bytes` : "",
    sizes: [...new Set(rows.flatMap(({ size }) => (size === null ? [] : [size])))].sort((a, b) => a - b),
  };
}

/** A panel for each place: trials of one size, or of all where size is null. */
export function panelsOf(
  latency: Latency,
  run: Pick<RunRow, "nodes" | "variants">,
  quantiles: readonly LatencyQuantile[],
  bins: readonly LatencyBin[],
  size: string | null,
): Panel[] {
  const zones = zonesOf(run);
  const variants = placedVariants(run, latency.rows);
  const ofTrial = grouped(quantiles);
  const binsOf = grouped(bins);
  return latency.places.map((place) => ({
    title: endsWords(place, zones),
    series: [...variants.values()]
      .map((variant) => ({
        variant,
        profiles: latency.rows
          .filter(
            (row) =>
              row.status === "ok" &&
              row.metric !== null &&
              endsKey(row) === place &&
              variantKey(row) === variant.key &&
              (size === null || String(row.size ?? "") === size),
          )
          .map((trial) => ({
            trial,
            points: pointsOf(trial, ofTrial.get(keyOf(trial)) ?? [], binsOf.get(keyOf(trial)) ?? []),
          })),
      }))
      .filter(({ profiles }) => profiles.length > 0),
  }));
}

const keyOf = ({ trial_id, metric }: { trial_id: number; metric: string | null }): string => `${trial_id} ${metric}`;

function grouped<Row extends { trial_id: number; metric: string }>(rows: readonly Row[]): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) found.set(keyOf(row), [...(found.get(keyOf(row)) ?? []), row]);
  return found;
}

function pointsOf(
  { basis }: LatencyTrial,
  quantiles: readonly LatencyQuantile[],
  bins: readonly LatencyBin[],
): Point[] {
  if (basis !== "interval") return quantiles.map(({ quantile, value }) => ({ quantile, value }));
  const total = bins.reduce((sum, { n }) => sum + n, 0);
  let before = 0;
  return bins.map(({ lower, upper, n }) => {
    const point = { quantile: before / total, value: Math.sqrt(lower * upper) };
    before += n;
    return point;
  });
}

/** The percentile of one trial: the tool's own, or the bin in which it lies. Null where the trial does not know it. */
export function quantileOf({ trial, points }: Profile, quantile: number): number | null {
  if (trial.basis !== "interval")
    return points.find((point) => Math.abs(point.quantile - quantile) < 1e-9)?.value ?? null;
  // Of fewer requests than this the percentile is the slowest one's: no percentile.
  if ((trial.n ?? 0) * (1 - quantile) < 1 - 1e-9) return null;
  let found: number | null = null;
  for (const point of points) {
    if (point.quantile > quantile - 1e-12) break;
    found = point.value;
  }
  return found;
}

export const middle = (values: readonly number[]): number | null => {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? (sorted[half] as number) : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
};

/** The median over blocks of what each trial says for itself; a block's repetitions count as one. Never a pooled percentile. */
export function overBlocks(
  profiles: readonly Profile[],
  of: (profile: Profile) => number | null,
): { value: number | null; blocks: number } {
  const blocks = new Map<number, number[]>();
  for (const profile of profiles) {
    const value = of(profile);
    if (value !== null) blocks.set(profile.trial.block, [...(blocks.get(profile.trial.block) ?? []), value]);
  }
  return { value: middle([...blocks.values()].map((values) => middle(values) as number)), blocks: blocks.size };
}

export const blocksOf = (panels: readonly Panel[]): number =>
  new Set(panels.flatMap(({ series }) => series.flatMap(({ profiles }) => profiles.map(({ trial }) => trial.block))))
    .size;
