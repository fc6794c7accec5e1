/** A logarithmic axis that is labelled in whole numbers people read, with as many as its span bears. */
const MANTISSAS: readonly [decades: number, mantissas: readonly number[]][] = [
  [0.5, [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]],
  [1.1, [1, 1.5, 2, 3, 5, 7]],
  [2.6, [1, 2, 5]],
  [4.2, [1, 3]],
  [Number.POSITIVE_INFINITY, [1]],
];

/** As Plotly writes them on other axes: 10,000 and 0.0001. */
const WORDS = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function logAxis(values: readonly (number | null)[]): Record<string, unknown> {
  const known = values.filter((value): value is number => value !== null && value > 0);
  if (known.length === 0) return { type: "log" };
  const [least, most] = [Math.min(...known), Math.max(...known)].map(Math.log10) as [number, number];
  // Room for a dot at either end; and where all values are one, not a span of its last digits.
  const room = Math.max(0.06 * (most - least), (0.4 - (most - least)) / 2, 0.04);
  const range = [least - room, most + room] as const;
  const span = range[1] - range[0];
  const mantissas = MANTISSAS.find(([decades]) => span <= decades)?.[1] ?? [1];
  const tickvals: number[] = [];
  for (let decade = Math.floor(range[0]); decade <= range[1]; decade++) {
    tickvals.push(...mantissas.map((mantissa) => Number(`${mantissa}e${decade}`)));
  }
  const shown = tickvals.filter((value) => Math.log10(value) >= range[0] && Math.log10(value) <= range[1]);
  return {
    type: "log",
    range,
    ticklabeloverflow: "allow",
    tickvals: shown,
    ticktext: shown.map((value) => WORDS.format(value)),
  };
}
