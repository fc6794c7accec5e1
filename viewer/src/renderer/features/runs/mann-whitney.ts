/** Two independent series: how far the second lies above the first. The method of overlaylab's inference_samples, tested against it. */

/** Below six values on either side, no interval. */
export const FEWEST = 6;
/** Pairs up to which Mann and Whitney's U is taken exactly; beyond, its normal approximation is as good. */
const EXACT = 10_000;

/** A value between the least and the greatest that it can be, given the tool's step; -Infinity: the logarithm of zero. */
type Known = readonly [least: number, value: number, greatest: number];
export type Series = readonly Known[];

export interface Interval {
  low: number;
  high: number;
  /** How often such an interval holds the truth. */
  coverage: number;
}

export interface Shift {
  estimate: number;
  interval: Interval | null;
}

/** Two infinities are alike: zero against zero did not move. */
const less = (one: number, other: number): number => (one === other ? 0 : one - other);

// Of two infinities a difference is no number, and no order.
const ascending = (a: number, b: number): number => less(a, b);

export function median(values: readonly number[]): number {
  const sorted = [...values].sort(ascending);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  if (upper === undefined) throw new RangeError("the median of nothing");
  return sorted.length % 2 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** cumulative[u]: P(U ≤ u) where nothing differs, for u up to half of all pairs; U counts pairs whose first is the greater. */
function cumulative(m: number, n: number): number[] {
  const last = Math.floor((m * n) / 2);
  if (m * n > EXACT) {
    const spread = Math.sqrt((m * n * (m + n + 1)) / 12);
    // Half a pair for continuity.
    return Array.from({ length: last + 1 }, (_, u) => normal((u + 0.5 - (m * n) / 2) / spread));
  }
  // Ways to reach u: coefficients of ∏ (1 − q^(n+i)) / (1 − q^i), i from 1 to m. Integers, so nothing is rounded.
  const ways = new Array<bigint>(last + 1).fill(0n);
  ways[0] = 1n;
  let all = 1n;
  for (let i = 1; i <= m; i++) {
    for (let u = last; u >= n + i; u--) ways[u] = (ways[u] as bigint) - (ways[u - n - i] as bigint);
    for (let u = i; u <= last; u++) ways[u] = (ways[u] as bigint) + (ways[u - i] as bigint);
    all = (all * BigInt(n + i)) / BigInt(i);
  }
  let sum = 0n;
  return ways.map((way) => {
    sum += way;
    return Number(sum) / Number(all);
  });
}

/** Φ(z): a series near the middle, a continued fraction in the tail. */
function normal(z: number): number {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (Math.abs(z) < 5) {
    let [term, sum] = [z, z];
    for (let k = 3; Math.abs(term) > 1e-18 && k < 400; k += 2) {
      term *= (z * z) / k;
      sum += term;
    }
    return 0.5 + density * sum;
  }
  let fraction = 0;
  for (let k = 200; k > 0; k--) fraction = k / (Math.abs(z) + fraction);
  const tail = density / (Math.abs(z) + fraction);
  return z < 0 ? tail : 1 - tail;
}

const known = new Map<string, { rank: number; coverage: number } | null>();

/** The r-th smallest and r-th largest of all m·n differences hold the shift with 1 − 2·P(U < r), at least 1 − alpha. */
export function shiftRank(m: number, n: number, alpha: number): { rank: number; coverage: number } | null {
  if (Math.min(m, n) < FEWEST) return null;
  const key = `${m} ${n} ${alpha}`;
  let found = known.get(key);
  if (found === undefined) {
    const p = cumulative(m, n);
    // The first u that is not within alpha / 2; half of all pairs at most.
    const first = p.findIndex((each) => 2 * each > alpha);
    const rank = first < 0 ? p.length - 1 : first;
    found = rank > 0 ? { rank, coverage: 1 - 2 * (p[rank - 1] as number) } : null;
    known.set(key, found);
  }
  return found;
}

/** Hodges and Lehmann's estimate: the median of all differences; with Mann and Whitney's interval. */
export function shift(first: Series, second: Series, alpha: number): Shift {
  const differences = (of: (a: Known, b: Known) => number): number[] =>
    first.flatMap((a) => second.map((b) => of(a, b)));
  const estimate = median(differences((a, b) => less(b[1], a[1])));
  const found = shiftRank(first.length, second.length, alpha);
  if (!found) return { estimate, interval: null };
  const least = differences((a, b) => less(b[0], a[2])).sort(ascending);
  const most = differences((a, b) => less(b[2], a[0])).sort(ascending);
  return {
    estimate,
    interval: {
      low: least[found.rank - 1] as number,
      high: most[most.length - found.rank] as number,
      coverage: found.coverage,
    },
  };
}
