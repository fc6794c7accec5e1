import type { CheckRow, RatioColumns, VariantColumns } from "./columns";

/** One of the newest trials of a run, with the first metric of its tool. */
export interface RecentRow extends VariantColumns {
  trial_id: number;
  status: "running" | "ok" | "failed" | "void";
  reason: string | null;
  block: number;
  benchmark: string;
  warmup: number;
  started_at: string;
  duration: number | null;
  metric: string | null;
  unit: string | null;
  value: number | null;
}

/** From one trial's start to the next one's, over the newest ones; seconds are null before there are two. */
export interface PaceRow {
  gaps: number;
  seconds: number | null;
}

/** What the run says of its primary metric: one row of `comparison` for each overlay and mode. */
export interface VerdictRow extends VariantColumns, RatioColumns {
  benchmark: string;
  metric: string;
  unit: string;
  place: string | null;
  provisional: number;
  blocks: number;
  median: number | null;
  verdict: "lower" | "higher" | "same" | "cannot tell" | null;
  /** Had it been the only comparison. */
  verdict_alone_words: string | null;
  margin: number;
  left_out: number;
}

export interface EvidenceCountRow {
  kind: string;
  taken: number;
  held: number;
}

/** Trials that gave no result for the same reason. */
export interface TroubleRow extends VariantColumns {
  status: "failed" | "void";
  reason: string;
  benchmark: string;
  trials: number;
  first_trial: number;
}

export interface VersionRow {
  what: string;
  version: string;
  trials: number;
}

declare module "./queries" {
  interface Queries {
    run_recent: { parameters: { run: string }; row: RecentRow };
    run_pace: { parameters: { run: string }; row: PaceRow };
    run_verdicts: { parameters: { run: string }; row: VerdictRow };
    run_evidence: { parameters: { run: string }; row: EvidenceCountRow };
    run_checks: { parameters: { run: string }; row: CheckRow };
    run_troubles: { parameters: { run: string }; row: TroubleRow };
    run_versions: { parameters: { run: string }; row: VersionRow };
  }
}
