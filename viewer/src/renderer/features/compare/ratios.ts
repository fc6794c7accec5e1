/** A table's trials as dots: as they are, or each block's over the host's of the same block, as the statistics take them. */
import type { DotRow } from "../../../contract/compare";

export interface Dot {
  trial: number;
  block: number;
  /** Base units, or a ratio. */
  value: number;
  /** How many repetitions of the block are in it. */
  of: number;
}

interface Named {
  overlay: string;
  mode: string | null;
  encrypted: number;
}

/** What every ratio is to: the nodes' own network. Its other modes are variants like any overlay's. */
export const isHost = ({ overlay, mode }: Pick<Named, "overlay" | "mode">): boolean =>
  overlay === "host" && mode === null;

export const variantKey = ({ overlay, mode, encrypted }: Named): string => JSON.stringify([overlay, mode, encrypted]);

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] as number;
  return sorted.length % 2 ? upper : ((sorted[half - 1] as number) + upper) / 2;
}

/** By variant: every trial. */
export function trialDots(rows: readonly DotRow[]): Map<string, Dot[]> {
  const found = new Map<string, Dot[]>();
  for (const row of rows) {
    const key = variantKey(row);
    const dots = found.get(key) ?? [];
    dots.push({ trial: row.trial_id, block: row.block, value: row.value, of: 1 });
    found.set(key, dots);
  }
  return found;
}

/** By variant: one dot for each block; its trial is the one nearest to the median of the block's repetitions. */
export function blockDots(rows: readonly DotRow[]): Map<string, Dot[]> {
  const found = new Map<string, Dot[]>();
  for (const [key, dots] of trialDots(rows)) {
    const blocks = new Map<number, Dot[]>();
    for (const dot of dots) blocks.set(dot.block, [...(blocks.get(dot.block) ?? []), dot]);
    found.set(
      key,
      [...blocks].map(([block, own]) => {
        const value = median(own.map((dot) => dot.value));
        const nearest = own.reduce((best, dot) =>
          Math.abs(dot.value - value) < Math.abs(best.value - value) ? dot : best,
        );
        return { trial: nearest.trial, block, value, of: own.length };
      }),
    );
  }
  return found;
}

/** By variant: each block over the host's of the same block. A block without a host, or where it is zero, has none. */
export function ratioDots(rows: readonly DotRow[]): Map<string, Dot[]> {
  const blocks = blockDots(rows);
  const hosts = rows.find(isHost);
  const base = new Map((hosts ? (blocks.get(variantKey(hosts)) ?? []) : []).map(({ block, value }) => [block, value]));
  return new Map(
    [...blocks].map(([key, dots]) => [
      key,
      dots.flatMap((dot) => {
        const host = base.get(dot.block);
        return host ? [{ ...dot, value: dot.value / host }] : [];
      }),
    ]),
  );
}
