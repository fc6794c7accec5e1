/** How many blocks things that stand together have. */

/** 7 blocks, or 6 to 7 blocks. */
export function blockSpan(counts: readonly number[]): string {
  if (counts.length === 0) return "no blocks";
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? `${most} ${most === 1 ? "block" : "blocks"}` : `${least} to ${most} blocks`;
}

/** The same, said of each of them where they have as many. */
export const blocksOfEach = (counts: readonly number[]): string =>
  counts.length > 0 && new Set(counts).size === 1 ? `${blockSpan(counts)} each` : blockSpan(counts);
