import type { CheckRow, VariantColumns } from "./columns";

type Status = "planned" | "running" | "ok" | "failed" | "void";

/** A line in the list of a run's trials; failed and void ones first, as they ask for a look. */
export interface TrialRow extends VariantColumns {
  trial_id: number;
  block: number;
  repetition: number;
  warmup: number;
  benchmark: string;
  tool: string;
  placement: "remote" | "local";
  client_node: string;
  server_node: string;
  direction: string;
  status: Status;
  reason: string | null;
  started_at: string | null;
  duration: number | null;
}

/** All facts of one trial; its outputs only as lengths, in bytes. JSON columns are still text. */
export interface TrialFacts extends TrialRow {
  run_id: string;
  position: number;
  overlay_version: string | null;
  tool_version: string | null;
  overlay_mtu: number | null;
  underlay_mtu: number | null;
  parameters: string;
  argv: string | null;
  exit_code: number | null;
  stdout_length: number | null;
  stderr_length: number | null;
  node_state_length: number | null;
}

export type OutputName = "stdout" | "stderr" | "node_state";

/** A part of an output, counted in characters. */
export interface OutputRow {
  text: string | null;
  length: number | null;
}

export interface EvidenceRow {
  evidence_id: number;
  trial_id: number | null;
  recorded_at: string;
  node: string;
  kind: string;
  phase: string;
  ok: number;
  expected: string;
  observed: string;
  reason: string | null;
}

/** The samples of one trial: of one metric, of the whole trial or of its intervals, or one of the tool's percentiles. */
export interface TrialSampleRow {
  metric: string;
  unit: string;
  quantile: number | null;
  whole: number;
  n: number;
  low: number;
  mean: number;
  high: number;
  resolution: number | null;
}

/** A trial of the same cell: same benchmark, overlay, mode and place. */
export interface CellRow {
  trial_id: number;
  block: number;
  repetition: number;
  status: Status;
}

declare module "./queries" {
  interface Queries {
    trials: {
      parameters: { run: string; status: string | null; variant: string | null; benchmark: string | null };
      row: TrialRow;
    };
    trial: { parameters: { trial: number }; row: TrialFacts };
    trial_output: { parameters: { trial: number; output: OutputName; from: number; most: number }; row: OutputRow };
    trial_evidence: { parameters: { trial: number }; row: EvidenceRow };
    trial_samples: { parameters: { trial: number }; row: TrialSampleRow };
    trial_checks: { parameters: { trial: number }; row: CheckRow };
    trial_cell: { parameters: { trial: number }; row: CellRow };
    trial_kinds: {
      parameters: { run: string };
      row: {
        status: Status;
        overlay: string;
        mode: string | null;
        encrypted: number;
        benchmark: string;
        trials: number;
      };
    };
  }
}
