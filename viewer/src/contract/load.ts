import type { Ends, VariantColumns } from "./columns";

/** A trial that sent UDP at a rate that was asked for. A failed or void one has no values. */
export interface LoadTrial extends VariantColumns, Ends {
  trial_id: number;
  block: number;
  repetition: number;
  benchmark: string;
  tool: string;
  streams: number | null;
  /** Bytes, or "path". */
  datagram: string | null;
  /** bit/s, as the suite asked. */
  asked: number;
  status: "ok" | "failed" | "void";
  reason: string | null;
  /** bit/s, really sent. */
  offered: number | null;
  goodput: number | null;
  loss: number | null;
  jitter: number | null;
}

/** What `comparison` says of such a benchmark. */
export interface LoadMedian extends VariantColumns, Ends {
  benchmark: string;
  metric: "offered" | "goodput" | "loss" | "jitter";
  provisional: number;
  blocks: number;
  median: number | null;
  ratio_blocks: number;
  ratio: number | null;
  ratio_same_step: number | null;
  interval_low: number | null;
  interval_high: number | null;
  coverage: number | null;
  verdict_words: string | null;
}

declare module "./queries" {
  interface Queries {
    load_trials: { parameters: { run: string }; row: LoadTrial };
    load_medians: { parameters: { run: string }; row: LoadMedian };
    /** Runs that hold such trials, newest first. */
    load_runs: { parameters: Record<string, never>; row: { run_id: string } };
  }
}
