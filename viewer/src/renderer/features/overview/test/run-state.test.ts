import { expect, test } from "vitest";
import {
  elapsed,
  groupOf,
  mayBeKilled,
  SILENT_S,
  silence,
  stateAdvice,
  stateWords,
  variantsInShort,
} from "../run-state";

const NOW = Date.parse("2026-11-21T12:00:00Z") / 1000;
const ago = (seconds: number): string => new Date((NOW - seconds) * 1000).toISOString();
const RUNNING = { state: "running", origin: "measured", started_at: ago(7200), ended_at: null } as const;

test("a run that stores nothing for long may have been killed, and its time stands still", () => {
  const killed = { ...RUNNING, written_at: ago(SILENT_S + 60) };
  expect([silence(killed, NOW), mayBeKilled(killed, NOW)]).toEqual([SILENT_S + 60, true]);
  expect(stateWords(killed, NOW)).toBe("running or killed");
  expect(stateAdvice(killed, NOW)).toBe("Running, or killed while it ran; ./task lab:resume carries it on.");
  expect(elapsed(killed, NOW)).toBe(7200 - SILENT_S - 60);
});

test("a run that has just stored something is running", () => {
  const alive = { ...RUNNING, written_at: ago(5) };
  expect([mayBeKilled(alive, NOW), stateWords(alive, NOW), stateAdvice(alive, NOW), elapsed(alive, NOW)]).toEqual([
    false,
    "running",
    null,
    7200,
  ]);
});

test("an imported run is no run of ours, and one that never ran took no time", () => {
  expect(stateWords({ state: "done", origin: "imported", written_at: null }, NOW)).toBe("imported");
  expect(elapsed({ state: "planned", started_at: null, ended_at: null, written_at: null }, NOW)).toBeNull();
});

test("which tier of a group a run is", () => {
  const run = { profile: "azure-a1", arguments: '{"group": "g1", "profiles": ["azure-a0", "azure-a1"]}' };
  expect(groupOf(run)).toEqual({ id: "g1", at: 2, of: 2 });
  expect([groupOf({ ...run, arguments: "{}" }), groupOf({ ...run, arguments: "no json" })]).toEqual([null, null]);
});

test("overlays in short", () => {
  const of = (...all: [string, string | null][]) =>
    variantsInShort({ variants: JSON.stringify(all.map(([overlay, mode]) => ({ overlay, mode, encrypted: false }))) });
  expect(of(["host", null], ["weave", "fastdp"])).toBe("host, weave fastdp");
  expect(of(["host", null], ["a", "1"], ["a", "2"], ["a", "3"])).toBe("host, a: 4 modes");
  expect(of(["host", null], ["a", "1"], ["b", "1"], ["c", "1"])).toBe("4 modes of 4 overlays");
  expect(variantsInShort({ variants: "broken" })).toBe("–");
});
