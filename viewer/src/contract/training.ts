import type { VariantColumns } from "./columns";
import type { ACCELERATORS } from "./terms";

/** One try at a drill, as the public view `attempt` has it. */
export interface AttemptRow extends VariantColumns {
  attempt_id: string;
  state: "running" | "repaired" | "given-up" | "abandoned";
  drill: string;
  title: string;
  level: number;
  /** What a trained engineer needs. */
  minutes: number;
  trainee: string | null;
  /** When the ticket was given. */
  started_at: string;
  ended_at: string | null;
  /** s from the ticket to its end; null of one that was abandoned. */
  duration: number | null;
  score: number | null;
  hints: number;
  failed_checks: number;
  /** In the trainee's words; null while `hidden`. */
  cause: string | null;
  machine: string;
  provider: string;
  accelerator: keyof typeof ACCELERATORS;
  image: string | null;
  cluster: string;
  profile: string;
  lab_version: string | null;
  /** s since the ticket of the newest pass of the prober, of one that is running; else null. */
  last_t: number | null;
  /** The same drill is at hand in another attempt: what this one says of the cause is not read. */
  hidden: number;
}

/** detail: JSON, see db/README.md; {} where it would tell the cause too early. */
export interface AttemptEventRow {
  ordinal: number;
  /** s since the ticket, below zero before it. */
  t: number;
  at: string;
  kind: string;
  detail: string;
}

interface OfMeasure {
  node: string;
  role: "client" | "server";
  measure: string;
  unit: string;
  better: "higher" | "lower";
  description: string;
}

/** One measure in a slice of an attempt's time: a pass of the prober, or several where there are many. */
export interface SliceRow extends OfMeasure {
  phase: "healthy" | "broken" | "running" | "check";
  /** s since the ticket, at the end of its last pass. */
  t: number;
  /** Passes in it, and of how many the measure could be measured. */
  n: number;
  measured: number;
  low: number | null;
  middle: number | null;
  high: number | null;
  /** Why it failed, of one of them. */
  reason: string | null;
}

/** One measure on the healthy nodes, or in the newest passes: ratios as mean, all else as median. */
export interface LevelRow extends OfMeasure {
  level: "healthy" | "now";
  value: number | null;
  n: number;
  measured: number;
  reason: string | null;
}

declare module "./queries" {
  interface Queries {
    attempts: { parameters: Record<string, never>; row: AttemptRow };
    attempt_events: { parameters: { attempt: string }; row: AttemptEventRow };
    /** last: s. */
    attempt_slices: { parameters: { attempt: string; last: number; slices: number }; row: SliceRow };
    attempt_levels: { parameters: { attempt: string; passes: number }; row: LevelRow };
  }
}
