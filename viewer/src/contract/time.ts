import type { VariantColumns } from "./columns";

/** Something that was measured in intervals, between two places. */
export interface TimeBenchmarkRow {
  benchmark: string;
  tool: string;
  placement: "remote" | "local";
  direction: string;
  client_node: string;
  server_node: string;
  trials: number;
  samples: number;
  /** Metrics that are known for the whole trial alone, with commas; null: none. */
  whole_only: string | null;
}

/** One metric of one trial that has intervals. */
export interface TimeTrialRow extends VariantColumns {
  trial_id: number;
  block: number;
  repetition: number;
  warmup: number;
  metric: string;
  unit: string;
  /** Interval samples. */
  n: number;
  /** s from the trial's start that the tool left out of its figures; null where it was told of none. */
  omit: number | null;
  duration: number | null;
}

/** A sample; or, where a trial has too many of them, what lies in a slice of its time. */
export interface TimePointRow {
  trial_id: number;
  metric: string;
  unit: string;
  /** s since the trial's start. */
  t_start: number;
  t_end: number;
  low: number;
  middle: number;
  high: number;
  /** Samples in it. */
  n: number;
}

/** The sender's bucket of a tier with a burst, before and after a trial; bytes, and bit/s sustained. Below zero: overdrawn. */
export interface TimeBucketRow {
  trial_id: number;
  capacity: number;
  sustained: number;
  before: number | null;
  after: number | null;
}

interface OfBenchmark {
  run: string;
  benchmark: string;
  placement: string;
  direction: string;
  client: string;
  server: string;
}

declare module "./queries" {
  interface Queries {
    time_benchmarks: { parameters: { run: string }; row: TimeBenchmarkRow };
    time_trials: { parameters: OfBenchmark & Record<string, string>; row: TimeTrialRow };
    /** whole, sliced: JSON arrays of trial_id. */
    time_points: { parameters: { whole: string; sliced: string; slices: number }; row: TimePointRow };
    time_buckets: { parameters: { trials: string }; row: TimeBucketRow };
  }
}
