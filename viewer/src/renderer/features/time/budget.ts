/** How much is read and drawn at once, so that a run with a million samples stays quick. */
import type { TimeTrialRow } from "../../../contract/time";

/** Samples that one question reads of several blocks. More lines over each other tell nobody more. */
export const READ_MOST = 25_000;
/** Of the first block, which is all that there is to see. */
export const FIRST_MOST = 100_000;
/** Points that all panels draw. */
const DRAW_MOST = 4000;
/** A trial with more points is shown in slices. */
const TRIAL_MOST = 2000;
const TRIAL_LEAST = 100;

export interface Budget {
  /** trial_id of what is read as it is. */
  whole: number[];
  /** trial_id of what is read in slices of its time. */
  sliced: number[];
  /** Blocks of which something is left out. */
  leftOut: number[];
  /** Points above which a trial is sliced. */
  most: number;
  slices: number;
}

/** Block by block until one has no room: a block is shown whole or not at all, but for the first. */
export function budget(trials: TimeTrialRow[]): Budget {
  const size = new Map<number, { block: number; n: number }>();
  for (const { trial_id, block, n } of trials) size.set(trial_id, { block, n: (size.get(trial_id)?.n ?? 0) + n });
  const blocks = new Map<number, { ids: number[]; n: number }>();
  for (const [id, { block, n }] of size) {
    const found = blocks.get(block) ?? { ids: [], n: 0 };
    blocks.set(block, { ids: [...found.ids, id], n: found.n + n });
  }
  const read: number[] = [];
  const leftOut: number[] = [];
  let taken = 0;
  for (const [block, { ids, n }] of [...blocks].sort(([one], [other]) => one - other)) {
    const most = read.length ? READ_MOST : FIRST_MOST;
    if (taken + n <= most) {
      read.push(...ids);
      taken += n;
      continue;
    }
    leftOut.push(block);
    // The first one in part, so that there is something to see: at least one trial, however long.
    for (const id of read.length ? [] : ids) {
      const its = size.get(id)?.n ?? 0;
      if (read.length && taken + its > most) break;
      read.push(id);
      taken += its;
    }
    taken = Math.max(taken, most);
  }
  const most = Math.max(TRIAL_LEAST, Math.min(TRIAL_MOST, Math.floor(DRAW_MOST / Math.max(1, read.length))));
  const slices = Math.max(TRIAL_LEAST, Math.floor(most / 4));
  const isLong = (id: number): boolean => (size.get(id)?.n ?? 0) > most;
  return {
    whole: read.filter((id) => !isLong(id)),
    sliced: read.filter(isLong),
    leftOut,
    most,
    slices,
  };
}
