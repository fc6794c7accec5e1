import type { Ends, VariantColumns } from "./columns";
import type { LatencyMetric } from "./metrics";

export type { LatencyMetric };

/** A trial that measured latency; one row for each of its latency metrics. A failed or void one has one row without any. */
export interface LatencyTrial extends VariantColumns, Ends {
  trial_id: number;
  block: number;
  repetition: number;
  benchmark: string;
  tool: string;
  /** Such as tcp_rr; null where the tool has one kind only. */
  test: string | null;
  protocol: string | null;
  /** Bytes of a request, message or payload; null where the tool was not told. */
  size: number | null;
  /** 1/s: what an open loop was to send. */
  messages_per_second: number | null;
  status: "ok" | "failed" | "void";
  reason: string | null;
  metric: LatencyMetric | null;
  /** interval: every request was kept, in `latency_bins`. whole: the tool gave a mean, or percentiles. */
  basis: "interval" | "whole" | null;
  n: number | null;
  value: number | null;
  p50: number | null;
  p99: number | null;
}

/** A percentile that the tool itself computed for one trial. */
export interface LatencyQuantile {
  trial_id: number;
  metric: LatencyMetric;
  quantile: number;
  value: number;
}

/** Requests of one trial in one bin. */
export interface LatencyBin {
  trial_id: number;
  metric: LatencyMetric;
  lower: number;
  upper: number;
  n: number;
}

declare module "./queries" {
  interface Queries {
    latency_trials: { parameters: { run: string }; row: LatencyTrial };
    latency_quantiles: { parameters: { run: string }; row: LatencyQuantile };
    latency_bins: { parameters: { run: string; tool: string }; row: LatencyBin };
    latency_runs: { parameters: Record<string, never>; row: { run_id: string } };
  }
}
