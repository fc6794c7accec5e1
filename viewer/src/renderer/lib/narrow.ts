/** Narrowing rows down, one choice after the other, to those that may stand in one plot. */

export interface Dimension<Row> {
  name: string;
  title: string;
  /** The row's value, as a key. */
  of(row: Row): string;
  label(key: string): string;
  /** The order of the options; by default that of their labels, numbers in them by size. */
  order?(a: string, b: string): number;
}

export interface Choice {
  name: string;
  title: string;
  options: { key: string; label: string }[];
  chosen: string;
}

const natural = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });

/** An earlier choice decides what a later one offers. What was wanted and is not there becomes the first that is. */
export function narrowed<Row>(
  rows: readonly Row[],
  dimensions: readonly Dimension<Row>[],
  wanted: Readonly<Record<string, string>>,
): { rows: Row[]; choices: Choice[] } {
  let left = [...rows];
  const choices = dimensions.map(({ name, title, of, label, order }) => {
    const keys = [...new Set(left.map(of))].sort(order ?? ((a, b) => natural(label(a), label(b))));
    const chosen = keys.find((key) => key === wanted[name]) ?? keys[0] ?? "";
    left = left.filter((row) => of(row) === chosen);
    return { name, title, options: keys.map((key) => ({ key, label: label(key) })), chosen };
  });
  return { rows: left, choices };
}
