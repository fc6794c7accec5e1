/** How far a run is, which of a group it is, and what it was asked for, as the list of runs and its details say it. */
import type { RunRow } from "../../../contract/run";
import { fields } from "../../lib/json";
import { variantsOf, variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";

/** Longer than an overlay takes to converge on emulated CPUs: a run that stores nothing for so long was likely killed. */
export const SILENT_S = 15 * 60;

/** Up to three by name, else how many. */
export function variantsInShort(run: Pick<RunRow, "variants">): string {
  const all = variantsOf(run);
  const names = [...new Set(all.map(({ overlay }) => overlay))];
  if (all.length === 0) return "–";
  if (all.length <= 3) return all.map(variantWords).join(", ");
  return names.length <= 3
    ? `${names.map((name) => clean(name, 40)).join(", ")}: ${all.length} modes`
    : `${all.length} modes of ${names.length} overlays`;
}

/** Several tiers that were asked for at once: which of them this is. */
export function groupOf(run: Pick<RunRow, "arguments" | "profile">): { id: string; at: number; of: number } | null {
  const { group, profiles } = fields(run.arguments);
  if (typeof group !== "string") return null;
  const all = Array.isArray(profiles) ? profiles : [];
  return { id: group, at: all.indexOf(run.profile) + 1, of: all.length };
}

const seconds = (iso: string | null): number | null => {
  const found = iso === null ? NaN : Date.parse(iso) / 1000;
  return Number.isFinite(found) ? found : null;
};

/** s since something was stored; null where that says nothing. now: s since 1970. */
export function silence(run: Pick<RunRow, "state" | "written_at">, now: number): number | null {
  const last = run.state === "running" ? seconds(run.written_at) : null;
  return last === null ? null : Math.max(0, now - last);
}

/** Nobody can tell a killed run from a slow one by its row alone. */
export const mayBeKilled = (run: Pick<RunRow, "state" | "written_at">, now: number): boolean =>
  (silence(run, now) ?? 0) > SILENT_S;

export const stateWords = (run: Pick<RunRow, "state" | "origin" | "written_at">, now: number): string => {
  if (run.origin === "imported") return "imported";
  return mayBeKilled(run, now) ? "running or killed" : run.state;
};

/** What to do about a run that is not done; null where there is nothing to do. */
export function stateAdvice(run: Pick<RunRow, "state" | "written_at" | "origin">, now: number): string | null {
  if (run.origin === "imported") return "Read from another program's file; nothing of it was measured here.";
  if (mayBeKilled(run, now)) return "Running, or killed while it ran; ./task lab:resume carries it on.";
  if (run.state === "interrupted") return "Interrupted; ./task lab:resume carries it on.";
  if (run.state === "planned") return "Planned; nothing was measured yet.";
  if (run.state === "failed") return "Failed: it ended before its plan did.";
  return null;
}

/** s from its first start to its end, or until now; null before it ran. Breaks of a resumed run are in it. */
export function elapsed(
  run: Pick<RunRow, "state" | "started_at" | "ended_at" | "written_at">,
  now: number,
): number | null {
  const from = seconds(run.started_at);
  const to = run.state === "running" ? (mayBeKilled(run, now) ? seconds(run.written_at) : now) : seconds(run.ended_at);
  return from === null || to === null ? null : Math.max(0, to - from);
}
