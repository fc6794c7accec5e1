/** A table of values: what a plot shows, for CSV, copying and screen readers. */
export type Cell = string | number | null;

export interface Grid {
  /** number: its texts are numbers, to be set right. */
  columns: { name: string; unit?: string; number?: boolean }[];
  rows: Cell[][];
  /** For each row what a click on its point in the plot gives; null for rows that are no point. */
  points?: unknown[];
}
