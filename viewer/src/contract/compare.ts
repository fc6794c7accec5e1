import type { RatioColumns, VariantColumns } from "./columns";

/** What names a table of `comparison`: one metric of one benchmark between one pair of endpoints. */
export interface TableKey {
  benchmark: string;
  metric: string;
  placement: string;
  direction: string;
  client_node: string;
  server_node: string;
}

/** A table of a run. compared: whether anything of it has a ratio to the host. */
export interface TableRow extends TableKey {
  unit: string;
  better: "higher" | "lower";
  place: string | null;
  /** JSON: tools with their versions. */
  tools: string;
  step: number | null;
  is_primary: number;
  compared: number;
}

/** A variant of a table, with what Python's statistics say of it, and how many of its trials gave nothing. */
export interface ComparisonRow extends VariantColumns, RatioColumns {
  unit: string;
  better: "higher" | "lower";
  provisional: number;
  blocks_done: number;
  blocks: number;
  median: number | null;
  low: number | null;
  high: number | null;
  verdict: "lower" | "higher" | "same" | "cannot tell" | null;
  p: number | null;
  verdict_alone_words: string | null;
  margin: number;
  left_out: number;
  theory: number | null;
  /** JSON, see db/README.md. */
  published: string;
  failed: number;
  void: number;
}

/** The value of one trial that holds. */
export interface DotRow extends VariantColumns {
  trial_id: number;
  block: number;
  repetition: number;
  value: number;
}

/** A table that finished runs of the file have with a ratio to the host. */
export interface GridTableRow extends TableKey {
  unit: string;
  better: "higher" | "lower";
  is_primary: number;
  runs: number;
}

/** One variant, or the host, of the newest finished run that has it, of those alike in profile, accelerator, system, machine, suite and scale. */
export interface GridCellRow extends VariantColumns, RatioColumns {
  run_id: string;
  started_at: string | null;
  created_at: string;
  origin: string;
  machine: string;
  accelerator: string;
  system: string | null;
  profile: string;
  cloud: string | null;
  instance: string | null;
  suite: string;
  scale: number;
  better: "higher" | "lower";
  blocks: number;
  /** Over blocks, in the table's unit, with the smallest and the largest block. */
  median: number | null;
  low: number | null;
  high: number | null;
  /** The host's, of the same run. */
  host_median: number | null;
  theory: number | null;
  published: string;
}

type Keyed = { [Name in keyof TableKey]: string };

declare module "./queries" {
  interface Queries {
    compare_tables: { parameters: { run: string }; row: TableRow };
    compare_rows: { parameters: { run: string } & Keyed; row: ComparisonRow };
    compare_dots: { parameters: { run: string } & Keyed; row: DotRow };
    grid_tables: { parameters: Record<string, never>; row: GridTableRow };
    grid_cells: { parameters: Keyed; row: GridCellRow };
  }
}
