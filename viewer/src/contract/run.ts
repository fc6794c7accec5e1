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
  /** What the nodes' system is, and the digest of the node kit that they measured with; null for older and imported ones. */
  system: string | null;
  kit: string | null;
  /** When anything of it was last stored, for one that says it is running; else null. */
  written_at: string | null;
}
