/** Which of many checks are looked at. Pure: tested without a window. */
import type { TierCheckRow } from "../../../contract/tiers";

/** Nodes of different kinds are never put together. */
export const nodesOf = (row: Pick<TierCheckRow, "accelerator" | "provider" | "machine">): string =>
  `${row.accelerator}, ${row.provider}, ${row.machine}`;

/** Of each profile the newest run, of nodes of one kind; rows come newest first. */
export function newest(rows: readonly TierCheckRow[]): TierCheckRow[] {
  const run = new Map<string, string>();
  for (const row of rows) if (!run.has(row.profile)) run.set(row.profile, row.run_id);
  return rows.filter((row) => run.get(row.profile) === row.run_id);
}

/** The nodes on which most profiles were checked, of several such the newest; rows come newest first. */
export function mostChecked(rows: readonly TierCheckRow[]): string | null {
  const profiles = new Map<string, Set<string>>();
  for (const row of rows) profiles.set(nodesOf(row), (profiles.get(nodesOf(row)) ?? new Set()).add(row.profile));
  const most = Math.max(0, ...[...profiles.values()].map(({ size }) => size));
  return [...profiles].find(([, { size }]) => size === most)?.[0] ?? null;
}
