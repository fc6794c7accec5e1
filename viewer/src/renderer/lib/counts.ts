/** How many of a thing there are, in words. */

/** 1 trial, or 7 trials. */
export const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;

/** 7 blocks, or 6 to 7 blocks. */
export function blockSpan(counts: readonly number[]): string {
  if (counts.length === 0) return "no blocks";
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? counted(most, "block") : `${least} to ${most} blocks`;
}

/** The same, said of each of them where they have as many. */
export const blocksOfEach = (counts: readonly number[]): string =>
  counts.length > 0 && new Set(counts).size === 1 ? `${blockSpan(counts)} each` : blockSpan(counts);
