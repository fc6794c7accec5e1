import type { CheckColumns, VariantColumns } from "./columns";

/** The newest check of its kind between two nodes, in one run. Values are in the unit; see db/README.md. */
export interface TierCheckRow extends CheckColumns {
  run_id: string;
  created_at: string;
  profile: string;
  suite: string;
  accelerator: string;
  machine: string;
  provider: string;
  low: number | null;
  high: number | null;
}

/** A row of the public view `comparison` that something was published for. */
export interface TierPublishedRow extends VariantColumns {
  run_id: string;
  created_at: string;
  profile: string;
  accelerator: string;
  machine: string;
  provider: string;
  benchmark: string;
  metric: string;
  unit: string;
  better: string;
  place: string | null;
  tools: string;
  provisional: number;
  ratio_blocks: number;
  ratio: number | null;
  interval_low: number | null;
  interval_high: number | null;
  coverage: number | null;
  theory: number | null;
  /** JSON, as db/README.md says. */
  published: string;
}

declare module "./queries" {
  interface Queries {
    tier_checks: { parameters: Record<string, never>; row: TierCheckRow };
    tier_published: { parameters: Record<string, never>; row: TierPublishedRow };
  }
}
