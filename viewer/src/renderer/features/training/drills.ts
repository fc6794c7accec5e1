/** Attempts by drill: how often each was tried, and how it went. */
import type { AttemptRow } from "../../../contract/training";

export interface DrillHistory {
  drill: string;
  title: string;
  level: number;
  tries: number;
  repaired: number;
  bestScore: number | null;
  /** s, of those that were repaired. */
  shortest: number | null;
  /** When the newest began. */
  last: string;
}

/** attempts: newest first. The drill that was tried last comes first, with the title that it had then. */
export function byDrill(attempts: readonly AttemptRow[]): DrillHistory[] {
  const found = new Map<string, AttemptRow[]>();
  for (const attempt of attempts) found.set(attempt.drill, [...(found.get(attempt.drill) ?? []), attempt]);
  return [...found].map(([drill, tries]) => {
    const repaired = tries.filter(({ state }) => state === "repaired");
    const scores = repaired.flatMap(({ score }) => score ?? []);
    const times = repaired.flatMap(({ duration }) => duration ?? []);
    return {
      drill,
      title: tries[0]?.title ?? drill,
      level: tries[0]?.level ?? 1,
      tries: tries.length,
      repaired: repaired.length,
      bestScore: scores.length ? Math.max(...scores) : null,
      shortest: times.length ? Math.min(...times) : null,
      last: tries[0]?.started_at ?? "",
    };
  });
}
