/** Columns that rows of several questions have alike; db/README.md says what they mean. */

export interface VariantColumns {
  overlay: string;
  mode: string | null;
  encrypted: number;
}

/** Between which endpoints, and which way the data went. */
export interface Ends {
  placement: "remote" | "local";
  client_node: string;
  server_node: string;
  direction: "client-to-server" | "server-to-client";
}

/** Of the view `comparison`: a variant's ratio to the host, and what is claimed of it. */
export interface RatioColumns {
  ratio_blocks: number;
  ratio: number | null;
  ratio_low: number | null;
  ratio_high: number | null;
  ratio_same_step: number | null;
  interval_low: number | null;
  interval_high: number | null;
  coverage: number | null;
  verdict_words: string | null;
}

/** Of the view `profile_check`. */
export interface CheckColumns {
  check_id: number;
  name: string;
  client_node: string;
  server_node: string;
  expected: number | null;
  measured: number | null;
  tolerance: number | null;
  unit: string;
  verdict: "pass" | "fail" | "not-applicable";
  reason: string | null;
}

export interface CheckRow extends CheckColumns {
  recorded_at: string;
}
