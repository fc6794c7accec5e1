/** Runs whose trials all failed or were withdrawn: nothing can be drawn of them, and why is no riddle. */

export interface Counts {
  ok: number;
  failed: number;
  void: number;
}

export const countsOf = (run: { trials_ok: number; trials_failed: number; trials_void: number }): Counts => ({
  ok: run.trials_ok,
  failed: run.trials_failed,
  void: run.trials_void,
});

/** Of rows, of which a trial may have several. */
export function countsOfTrials(rows: readonly { trial_id: number; status: string }[]): Counts {
  const all = [...new Map(rows.map(({ trial_id, status }) => [trial_id, status])).values()];
  const count = (status: string): number => all.filter((each) => each === status).length;
  return { ok: count("ok"), failed: count("failed"), void: count("void") };
}

/** "all 42 trials are void"; null where one holds, or none has ended. */
export function lostWords({ ok, failed, void: withdrawn }: Counts): string | null {
  const lost = failed + withdrawn;
  if (ok > 0 || lost === 0) return null;
  if (lost === 1) return failed ? "its only trial failed" : "its only trial is void";
  if (failed && withdrawn) return `none of ${lost} trials holds: ${failed} failed, ${withdrawn} void`;
  const all = lost === 2 ? "both" : `all ${lost}`;
  return failed ? `${all} trials failed` : `${all} trials are void`;
}
