import { expect, test } from "vitest";
import type { VerdictRow } from "../../src/contract/overview";
import {
  elapsed,
  groupOf,
  mayBeKilled,
  SILENT_S,
  silence,
  stateAdvice,
  stateWords,
  variantsInShort,
  variantWords,
  verdictSentence,
} from "../../src/renderer/runs";
import { commandLine } from "../../src/renderer/shell";
import { sorted } from "../../src/renderer/sorted";

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

test("one block has no range, and is not said to have one", () => {
  const row = {
    ...{ overlay: "weave", mode: "fastdp", encrypted: 0, unit: "bit/s", median: 95e6, blocks: 1, left_out: 0 },
    ...{ ratio: 0.994, ratio_low: 0.994, ratio_high: 0.994, ratio_same_step: 0, ratio_blocks: 1 },
    ...{ interval_low: null, interval_high: null, coverage: null, verdict_words: null, provisional: 0 },
  } as unknown as VerdictRow;
  const said = (part: Partial<VerdictRow>) =>
    verdictSentence({ ...row, ...part }, { rateUnit: "auto", timeUnit: "auto" });
  expect(said({})).toBe("no verdict below six blocks: 95 Mbit/s, .994 of the host, 1 block.");
  expect(said({ ratio_low: 0.9, ratio_blocks: 2 })).toBe(
    "no verdict below six blocks: 95 Mbit/s, .994 of the host (blocks: .900 to .994), 2 blocks.",
  );
});

test("overlays in short", () => {
  const of = (...all: [string, string | null][]) =>
    variantsInShort({ variants: JSON.stringify(all.map(([overlay, mode]) => ({ overlay, mode, encrypted: false }))) });
  expect(of(["host", null], ["weave", "fastdp"])).toBe("host, weave fastdp");
  expect(of(["host", null], ["a", "1"], ["a", "2"], ["a", "3"])).toBe("host, a: 4 modes");
  expect(of(["host", null], ["a", "1"], ["b", "1"], ["c", "1"])).toBe("4 modes of 4 overlays");
  expect(variantsInShort({ variants: "broken" })).toBe("–");
  expect(variantWords({ overlay: "weave", mode: "sleeve", encrypted: 1 })).toBe("weave sleeve encrypted");
  expect(variantWords({ overlay: "weave", mode: "sleeve-encrypted", encrypted: 1 })).toBe("weave sleeve-encrypted");
});

test("a command line that a shell reads back", () => {
  expect(commandLine(["iperf3", "--time", "5", "a b", "it's", "", "x\n\u001b[31m'"])).toBe(
    `iperf3 --time 5 'a b' 'it'\\''s' '' $'x\\x0a\\x1b[31m\\''`,
  );
});

test("sorting keeps what is missing last, either way", () => {
  const column = { title: "n", by: (row: number | null) => row, cell: String };
  expect(sorted([2, null, 1], column, false)).toEqual([1, 2, null]);
  expect(sorted([2, null, 1], column, true)).toEqual([2, 1, null]);
});
