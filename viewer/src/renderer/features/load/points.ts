/** Offered load: rows of one choice as what the plots show. */
import type { Ends } from "../../../contract/columns";
import type { LoadMedian, LoadTrial } from "../../../contract/load";
import type { RunRow } from "../../../contract/run";
import { endsDimension, endsKey } from "../../lib/ends";
import { type Choice, type Dimension, narrowed } from "../../lib/narrow";
import { clean } from "../../lib/text";
import { number } from "../../lib/units";
import { type Placed, placedVariants, variantKey, zonesOf } from "../../lib/variants";

export type LoadMetric = "goodput" | "loss" | "jitter";

/** Where what was sent differs from what was asked for by more, the plot says so. */
export const OFF = 0.05;

export interface LoadSeries {
  variant: Placed;
  /** Trials that are ok, step by step. */
  trials: LoadTrial[];
  /** What the run's tables say, for each step; nothing for one that has no block yet. */
  medians: Map<number, Partial<Record<LoadMedian["metric"], LoadMedian>>>;
}

/** What the x axis is: the load, or the size of the datagrams at one load. */
export type Against = "load" | "datagram";

export interface Load {
  against: Against;
  series: LoadSeries[];
  /** Loads asked for, or sizes, ascending: also those that gave nothing. */
  steps: number[];
  blocks: number;
  /** In words, for titles. */
  of: string;
}

const datagramWords = (key: string): string =>
  key === "path" ? "largest that fits the path" : /^\d+$/.test(key) ? `${key} bytes` : "not said";

/** The load asked for, or the datagram's bytes; null: not on this axis. */
export const stepOf = (against: Against, { asked, datagram }: LoadTrial): number | null =>
  against === "load" ? asked : /^\d+$/.test(datagram ?? "") ? Number(datagram) : null;

const ENDS = (zones: ReadonlyMap<string, string>) => endsDimension(zones) as Dimension<Ends> as Dimension<LoadTrial>;
const DATAGRAM: Dimension<LoadTrial> = {
  name: "datagram",
  title: "Datagrams",
  of: ({ datagram }) => datagram ?? "",
  label: datagramWords,
  order: (a, b) => Number(b === "path") - Number(a === "path") || Number(a) - Number(b),
};
const asked = (words: (rate: number) => string): Dimension<LoadTrial> => ({
  name: "asked",
  title: "Load asked for",
  of: ({ asked: rate }) => String(rate),
  label: (key) => words(Number(key)),
  order: (a, b) => Number(a) - Number(b),
});
const AGAINST: Record<Against, string> = { load: "offered load", datagram: "datagram size" };
/** The tool that took most steps first. */
const tool = (rows: readonly LoadTrial[], against: Against): Dimension<LoadTrial> => {
  const steps = (key: string) =>
    new Set(rows.filter((row) => row.tool === key).map((row) => stepOf(against, row))).size;
  return {
    name: "tool",
    title: "Tool",
    of: (row) => row.tool,
    label: (key) => clean(key, 40),
    order: (a, b) => steps(b) - steps(a) || a.localeCompare(b),
  };
};
const STREAMS: Dimension<LoadTrial> = {
  name: "streams",
  title: "Streams",
  of: ({ streams }) => String(streams ?? ""),
  label: (key) => key || "not said",
};

/** Axes along which some tool took more than one step, and the load where that leaves out trials, or there is none. */
function axes(rows: readonly LoadTrial[]): Against[] {
  const several = (against: Against, fixed: (row: LoadTrial) => unknown): boolean => {
    const steps = new Map<string, Set<number>>();
    for (const row of rows) {
      const step = stepOf(against, row);
      const key = JSON.stringify([row.tool, row.streams, fixed(row)]);
      if (step !== null) steps.set(key, (steps.get(key) ?? new Set()).add(step));
    }
    return [...steps.values()].some((found) => found.size > 1);
  };
  const found: Against[] = [];
  if (several("load", ({ datagram }) => datagram)) found.push("load");
  if (several("datagram", (row) => row.asked)) found.push("datagram");
  const leavesOut = rows.some((row) => stepOf("datagram", row) === null);
  if (!found.length || (!found.includes("load") && leavesOut)) found.push("load");
  return found;
}

export function loadOf(
  trials: readonly LoadTrial[],
  medians: readonly LoadMedian[],
  run: Pick<RunRow, "variants" | "nodes">,
  wanted: Readonly<Record<string, string>>,
  rate: (value: number) => string,
): Load & { choices: Choice[]; rows: LoadTrial[] } {
  const between = narrowed(trials, [ENDS(zonesOf(run))], wanted);
  const possible = axes(between.rows);
  const against = possible.find((each) => each === wanted.against) ?? possible[0] ?? "load";
  const onAxis = between.rows.filter((row) => stepOf(against, row) !== null);
  const along = narrowed(onAxis, [against === "load" ? DATAGRAM : asked(rate), tool(onAxis, against), STREAMS], wanted);
  const choices: Choice[] = [
    ...between.choices,
    {
      name: "against",
      title: "Against",
      options: possible.map((key) => ({ key, label: AGAINST[key] })),
      chosen: against,
    },
    ...along.choices,
  ];
  const words = Object.fromEntries(
    choices.map(({ name, options, chosen }) => [name, options.find(({ key }) => key === chosen)?.label ?? ""]),
  );
  return {
    against,
    rows: along.rows,
    choices,
    series: seriesOf(along.rows, medians, placedVariants(run, trials), against),
    steps: [...new Set(along.rows.map((row) => stepOf(against, row) as number))].sort((a, b) => a - b),
    blocks: new Set(along.rows.filter(({ status }) => status === "ok").map(({ block }) => block)).size,
    of: [
      words.ends,
      against === "load" ? `datagrams: ${words.datagram}` : `${words.asked} asked for`,
      `${words.tool}${words.streams === "1" ? "" : `, ${words.streams} streams`}`,
    ].join("; "),
  };
}

function seriesOf(
  rows: readonly LoadTrial[],
  medians: readonly LoadMedian[],
  variants: ReadonlyMap<string, Placed>,
  against: Against,
): LoadSeries[] {
  const step = (row: LoadTrial): number => stepOf(against, row) as number;
  const steps = new Map(rows.map((row) => [`${row.benchmark} ${endsKey(row)}`, step(row)]));
  const series: LoadSeries[] = [...variants.values()].map((variant) => ({
    variant,
    trials: rows
      .filter((row) => row.status === "ok" && variantKey(row) === variant.key)
      .sort((a, b) => step(a) - step(b) || a.block - b.block || a.repetition - b.repetition),
    medians: new Map(),
  }));
  const byVariant = new Map(series.map((each) => [each.variant.key, each]));
  for (const row of medians) {
    const at = steps.get(`${row.benchmark} ${endsKey(row)}`);
    const of = byVariant.get(variantKey(row));
    if (at === undefined || !of || row.median === null) continue;
    of.medians.set(at, { ...of.medians.get(at), [row.metric]: row });
  }
  return series.filter((each) => each.trials.length > 0);
}

export const isOff = ({ asked, offered }: LoadTrial): boolean =>
  offered !== null && Math.abs(offered / asked - 1) > OFF;

/** Of what was sent and by the tool not lost, at least this share has to have arrived. */
const ARRIVED = 0.9;

/**
 * Less arrived than the loss says: the receiver counts what is missing between datagrams, and so nothing after the last
 * that came.
 */
export const contradicts = (values: { offered: number | null; goodput: number | null; loss: number | null }): boolean =>
  values.offered !== null &&
  values.goodput !== null &&
  values.loss !== null &&
  values.goodput < ARRIVED * (1 - values.loss) * values.offered;

/** A share as people say it; zero is zero, and little is not rounded to it. */
export const percent = (share: number | null): string =>
  share === null ? "–" : `${number(Number((share * 100).toPrecision(3)))}\u00a0%`;

const middle = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? (sorted[half] as number) : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
};

/**
 * The host's value in the block of a trial, by the same benchmark: the median of its repetitions, as the run's tables have it.
 * Null where it gave none.
 */
export function hostValue(load: Load, metric: LoadMetric, of: LoadTrial): number | null {
  const values = (load.series.find(({ variant }) => variant.isHost)?.trials ?? [])
    .filter((trial) => trial.benchmark === of.benchmark && trial.block === of.block)
    .map((trial) => trial[metric])
    .filter((value): value is number => value !== null);
  return values.length ? middle(values) : null;
}

/** Against the host of the same block: a quotient; a share's difference, as it may be zero. */
export function againstHost(load: Load, metric: LoadMetric, trial: LoadTrial): number | null {
  const [value, host] = [trial[metric], hostValue(load, metric, trial)];
  if (value === null || host === null) return null;
  if (metric === "loss") return value - host;
  return host === 0 ? null : value / host;
}
