/** One metric of a run against another's: the method of overlaylab's results_compare, tested against what that says. */
import { isSpeed } from "../../../contract/metrics";
import type { RunValueRow } from "../../../contract/runs";
import { COMPARED_UNITS } from "../../../contract/terms";
import { type Interval, type Series as Known, median, type Shift, shift } from "./mann-whitney";

const ALPHA = 0.05;

export interface Side {
  /** Blocks. */
  n: number;
  /** Of the ratio to the host, or of the value; null without values. */
  median: number | null;
}

export type Word = "lower" | "higher" | "same" | "cannot tell";

export interface Change extends Variant {
  kind: "ratio" | "difference";
  first: Side;
  second: Side;
  /** Second over first, or second less first; null without values on both sides. */
  estimate: number | null;
  interval: Interval | null;
  word: Word;
}

export interface Rules {
  margin: number;
  /** In how many parts the 5 % are divided: looks of one run times looks of the other. */
  shares: number;
}

export interface Variant {
  overlay: string;
  mode: string | null;
  encrypted: number;
}

/** One variant of one run: block → median of its repetitions, and the tool's steps. */
export interface Series extends Variant {
  blocks: Map<number, number>;
  step: number;
}

export const variantKey = (of: Variant): string => JSON.stringify([of.overlay, of.mode, of.encrypted]);

export const isHost = (of: Pick<Variant, "overlay" | "mode">): boolean => of.overlay === "host" && of.mode === null;

/** Rows of one table of one run (same endpoints), by variant. */
export function series(rows: readonly RunValueRow[]): Map<string, Series> {
  const values = new Map<string, Map<number, number[]>>();
  const found = new Map<string, Series>();
  for (const row of rows) {
    const key = variantKey(row);
    const own = found.get(key) ?? { ...row, blocks: new Map<number, number>(), step: 0 };
    own.step = Math.max(own.step, row.resolution ?? 0);
    found.set(key, own);
    const blocks = values.get(key) ?? new Map<number, number[]>();
    blocks.set(row.block, [...(blocks.get(row.block) ?? []), row.value]);
    values.set(key, blocks);
  }
  for (const [key, own] of found) {
    for (const [block, each] of [...(values.get(key) ?? [])].sort(([a], [b]) => a - b))
      own.blocks.set(block, median(each));
  }
  return found;
}

export const hostOf = (of: Map<string, Series>): Series | null => [...of.values()].find(isHost) ?? null;

/** [own value, host's] of each block that has both; null where no ratio means anything. */
export function pairsOf(own: Series, host: Series | null, unit: string): [number, number][] | null {
  if (!host || !COMPARED_UNITS.includes(unit)) return null;
  const found = [...own.blocks].flatMap(([block, value]): [number, number][] => {
    const base = host.blocks.get(block);
    return base ? [[value, base]] : [];
  });
  return found.length ? found : null;
}

/** The second run against the first, for every variant that both were asked for, but not for the host. */
export function compare(
  first: readonly RunValueRow[],
  second: readonly RunValueRow[],
  both: readonly Variant[],
  unit: string,
  rules: Rules,
): Change[] {
  const sides = [first, second].map(series);
  const hosts = sides.map(hostOf);
  const ratios = sides.some((side, at) =>
    [...side.values()].some((own) => !isHost(own) && pairsOf(own, hosts[at] ?? null, unit) !== null),
  );
  return both
    .filter((variant) => !isHost(variant))
    .map(({ overlay, mode, encrypted }) => {
      const [one, other] = sides.map((side, at) => {
        const own = side.get(variantKey({ overlay, mode, encrypted }));
        return own ? measuredOf(own, hosts[at] ?? null, unit, ratios) : NOTHING;
      }) as [Measured, Measured];
      return {
        overlay,
        mode,
        encrypted,
        kind: ratios ? "ratio" : "difference",
        ...judged([one, other], unit, ratios, rules),
      };
    });
}

interface Measured extends Side {
  known: Known;
}

const NOTHING: Measured = { n: 0, median: null, known: [] };

function measuredOf(own: Series, host: Series | null, unit: string, ratios: boolean): Measured {
  if (!ratios) {
    const values = [...own.blocks.values()];
    return {
      n: values.length,
      median: values.length ? median(values) : null,
      known: values.map((value) => [value, value, value] as const),
    };
  }
  const pairs = pairsOf(own, host, unit);
  if (!pairs) return NOTHING;
  const step = Math.max(own.step, host?.step ?? 0);
  // Nothing bounds a ratio where the step is as large as a host's value.
  const bounded = pairs.every(([, base]) => base > step);
  return {
    n: pairs.length,
    median: median(pairs.map(([value, base]) => value / base)),
    known: bounded
      ? pairs.map(
          ([value, base]) =>
            [log((value - step) / (base + step)), log(value / base), log((value + step) / (base - step))] as const,
        )
      : [],
  };
}

/** -Infinity of zero: nothing arrived, which is less than anything that did. */
const log = (value: number): number => (value > 0 ? Math.log(value) : Number.NEGATIVE_INFINITY);

function judged(
  [first, second]: [Measured, Measured],
  unit: string,
  ratios: boolean,
  { margin, shares }: Rules,
): Pick<Change, "first" | "second" | "estimate" | "interval" | "word"> {
  const sides = { first: { n: first.n, median: first.median }, second: { n: second.n, median: second.median } };
  if (!first.known.length || !second.known.length)
    return { ...sides, estimate: null, interval: null, word: "cannot tell" };
  const moved = shift(first.known, second.known, ALPHA / shares);
  const scale = ratios ? Math.exp : (value: number) => value;
  return {
    ...sides,
    estimate: scale(moved.estimate),
    interval: moved.interval && {
      low: scale(moved.interval.low),
      high: scale(moved.interval.high),
      coverage: moved.interval.coverage,
    },
    word: wordOf(moved, ratios, unit, margin),
  };
}

/** A margin is one of ratios, or points of what is a ratio itself; counts have none. */
function wordOf({ interval }: Shift, ratios: boolean, unit: string, margin: number): Word {
  if (!interval) return "cannot tell";
  const [up, down] = ratios
    ? [Math.log(1 + margin), -Math.log(1 - margin)]
    : unit === "ratio"
      ? [margin, margin]
      : [0, 0];
  if (-down <= interval.low && interval.high <= up) return "same";
  if (interval.high < 0) return "lower";
  return interval.low > 0 ? "higher" : "cannot tell";
}

/** As people say it of that metric. */
export function worded(word: Word, metric: string, better: string): string {
  if (word !== "lower" && word !== "higher") return word;
  const good = (word === "higher") === (better === "higher");
  if (isSpeed(metric)) return good ? "faster" : "slower";
  return good ? "better" : "worse";
}
