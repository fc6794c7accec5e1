/** All SQL that the viewer ever runs over a file, by name. */
import type { QueryName } from "../contract/queries";
import compare_dots from "./queries/compare_dots.sql";
import compare_rows from "./queries/compare_rows.sql";
import compare_tables from "./queries/compare_tables.sql";
import grid_cells from "./queries/grid_cells.sql";
import grid_tables from "./queries/grid_tables.sql";
import latency_bins from "./queries/latency_bins.sql";
import latency_quantiles from "./queries/latency_quantiles.sql";
import latency_runs from "./queries/latency_runs.sql";
import latency_trials from "./queries/latency_trials.sql";
import load_medians from "./queries/load_medians.sql";
import load_runs from "./queries/load_runs.sql";
import load_trials from "./queries/load_trials.sql";
import publication_flaws from "./queries/publication_flaws.sql";
import publication_precision from "./queries/publication_precision.sql";
import publication_values from "./queries/publication_values.sql";
import run_checks from "./queries/run_checks.sql";
import run_evidence from "./queries/run_evidence.sql";
import run_pace from "./queries/run_pace.sql";
import run_recent from "./queries/run_recent.sql";
import run_tables from "./queries/run_tables.sql";
import run_troubles from "./queries/run_troubles.sql";
import run_values from "./queries/run_values.sql";
import run_verdicts from "./queries/run_verdicts.sql";
import run_versions from "./queries/run_versions.sql";
import runs from "./queries/runs.sql";
import tier_checks from "./queries/tier_checks.sql";
import tier_published from "./queries/tier_published.sql";
import time_benchmarks from "./queries/time_benchmarks.sql";
import time_buckets from "./queries/time_buckets.sql";
import time_points from "./queries/time_points.sql";
import time_trials from "./queries/time_trials.sql";
import trial from "./queries/trial.sql";
import trial_cell from "./queries/trial_cell.sql";
import trial_checks from "./queries/trial_checks.sql";
import trial_evidence from "./queries/trial_evidence.sql";
import trial_kinds from "./queries/trial_kinds.sql";
import trial_output from "./queries/trial_output.sql";
import trial_samples from "./queries/trial_samples.sql";
import trials from "./queries/trials.sql";

export const QUERIES: Record<QueryName, string> = {
  latency_bins,
  latency_quantiles,
  latency_runs,
  latency_trials,
  load_medians,
  load_runs,
  load_trials,
  compare_tables,
  compare_rows,
  compare_dots,
  grid_tables,
  grid_cells,
  runs,
  run_tables,
  run_values,
  tier_checks,
  tier_published,
  publication_values,
  publication_flaws,
  publication_precision,
  run_recent,
  run_pace,
  run_verdicts,
  run_evidence,
  run_checks,
  run_troubles,
  run_versions,
  time_benchmarks,
  time_trials,
  time_points,
  time_buckets,
  trials,
  trial_kinds,
  trial,
  trial_output,
  trial_evidence,
  trial_samples,
  trial_checks,
  trial_cell,
};
