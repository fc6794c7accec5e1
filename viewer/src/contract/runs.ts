/** A table of a run: one metric of one benchmark between one pair of endpoints. */
export interface RunTableRow {
  benchmark: string;
  metric: string;
  unit: string;
  better: string;
  /** In words, what of the endpoints differs within the run; null where nothing does. */
  place: string | null;
  is_primary: number;
}

/** What one trial counts with in such a table. */
export interface RunValueRow {
  trial_id: number;
  block: number;
  overlay: string;
  mode: string | null;
  encrypted: number;
  overlay_mtu: number | null;
  value: number;
  resolution: number | null;
}

declare module "./queries" {
  interface Queries {
    run_tables: { parameters: { run: string }; row: RunTableRow };
    run_values: {
      parameters: { run: string; benchmark: string; metric: string; place: string | null };
      row: RunValueRow;
    };
  }
}
