import { expect, test } from "vitest";
import { countsOf, countsOfTrials, lostWords } from "../lost";

const words = (ok: number, failed: number, withdrawn: number): string | null =>
  lostWords(countsOf({ trials_ok: ok, trials_failed: failed, trials_void: withdrawn }));

test("a run of which no trial holds says so, and how each was lost", () => {
  expect(words(0, 0, 42)).toBe("all 42 trials are void");
  expect(words(0, 42, 0)).toBe("all 42 trials failed");
  expect(words(0, 2, 40)).toBe("none of 42 trials holds: 2 failed, 40 void");
  expect([words(0, 1, 0), words(0, 0, 1), words(0, 0, 2)]).toEqual([
    "its only trial failed",
    "its only trial is void",
    "both trials are void",
  ]);
});

test("one that has a trial that holds, or none that ended, says nothing of the kind", () => {
  expect([words(1, 3, 3), words(0, 0, 0)]).toEqual([null, null]);
});

test("a trial with several rows counts once", () => {
  const rows = [1, 1, 2].map((trial_id) => ({ trial_id, status: "void" }));
  expect(countsOfTrials(rows)).toEqual({ ok: 0, failed: 0, void: 2 });
});
