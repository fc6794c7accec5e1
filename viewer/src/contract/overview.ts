import type { CheckColumns, RatioColumns, VariantColumns } from "./columns";
import type { ACCELERATORS } from "./terms";

/** A run, as the public view `run` has it; JSON columns are still text. */
export interface RunRow {
  run_id: string;
  state: "planned" | "running" | "interrupted" | "done" | "failed";
  origin: "measured" | "imported";
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  machine: string;
  provider: string;
  accelerator: keyof typeof ACCELERATORS;
  image: string | null;
  cluster: string;
  profile: string;
  profile_digest: string;
  cloud: string | null;
  instance: string | null;
  suite: string;
  suite_digest: string;
  scale: number;
  seed: number;
  blocks: number;
  trials_planned: number;
  trials_done: number;
  trials_ok: number;
  trials_failed: number;
  trials_void: number;
  /** JSON: [{overlay, mode, encrypted}], in the order asked for. */
  variants: string;
  nodes: string;
  role_digests: string;
  arguments: string;
  /** Which overlaylab planned it; null for older and imported ones. */
  lab_version: string | null;
  /** When anything of it was last stored, for one that says it is running; else null. */
  written_at: string | null;
}

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

export interface CheckRow extends CheckColumns {
  recorded_at: string;
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

export interface OverviewQueries {
  runs: { parameters: Record<string, never>; row: RunRow };
  run_recent: { parameters: { run: string }; row: RecentRow };
  run_pace: { parameters: { run: string }; row: PaceRow };
  run_verdicts: { parameters: { run: string }; row: VerdictRow };
  run_evidence: { parameters: { run: string }; row: EvidenceCountRow };
  run_checks: { parameters: { run: string }; row: CheckRow };
  run_troubles: { parameters: { run: string }; row: TroubleRow };
  run_versions: { parameters: { run: string }; row: VersionRow };
}
