import { expect, test } from "vitest";
import type { RunRow } from "../../../contract/run";
import { runTitle, runWords } from "../run-words";
import { enoughAfter } from "../runs";

const RUN: RunRow = {
  run_id: "20261121T234422Z-3b52",
  state: "done",
  origin: "measured",
  created_at: "2026-11-21T23:44:22.000Z",
  started_at: "2026-11-21T23:44:22.896Z",
  ended_at: null,
  written_at: null,
  machine: "2 cores, AMD EPYC, 24 GB",
  provider: "libvirt",
  accelerator: "tcg",
  image: null,
  cluster: "pair",
  profile: "azure-a1",
  profile_digest: "",
  cloud: "Azure",
  instance: "A1",
  suite: "weave-vs-flannel-2016",
  suite_digest: "",
  scale: 0.1,
  seed: 1,
  blocks: 1,
  trials_planned: 20,
  trials_done: 20,
  trials_ok: 18,
  trials_failed: 0,
  trials_void: 2,
  variants: "[]",
  nodes: "{}",
  role_digests: "{}",
  arguments: "{}",
  lab_version: null,
  system: null,
  kit: null,
};

test("a run is told from others by one line", () => {
  expect(runTitle(RUN)).toBe("2026-11-21 23:44 UTC · weave-vs-flannel-2016 · azure-a1 · pair · tcg · done");
  expect(runTitle({ ...RUN, origin: "imported", started_at: null })).toBe(
    "2026-11-21 23:44 UTC · weave-vs-flannel-2016 · azure-a1 · pair · tcg · imported",
  );
});

test("its words say tier, accelerator, machine, blocks, scale and what is missing", () => {
  expect(runWords(RUN)).toBe(
    "Tier: Azure A1 (profile azure-a1) · tcg: virtual machines on emulated CPUs: ratios near the CPU's limit tell about the emulation · machine: 2 cores, AMD EPYC, 24 GB · 1 block · durations × 0.1 · 20 trials: 2 withdrawn (void).",
  );
  expect(
    runWords({
      ...RUN,
      cloud: null,
      instance: null,
      profile: "none",
      accelerator: "shared-kernel",
      blocks: 7,
      scale: 1,
      trials_planned: 64,
      trials_done: 39,
      trials_failed: 1,
      trials_void: 0,
    }),
  ).toBe(
    "Tier: profile none, which stands for no cloud tier · shared-kernel: system containers on the machine's own kernel · machine: 2 cores, AMD EPYC, 24 GB · 7 blocks · 64 trials: 1 failed, 25 not run.",
  );
});

test("a run that knew enough early misses nothing; one that was to take all its blocks does", () => {
  const early = {
    ...RUN,
    arguments: '{"precision": 0.05, "looks": [7, 14, 28]}',
    blocks: 28,
    trials_planned: 112,
    trials_done: 28,
    trials_void: 0,
  };
  expect(runWords(early)).toContain("· enough after 7 of at most 28 blocks · durations × 0.1 · 28 trials.");
  expect(runWords({ ...early, arguments: '{"precision": null}' })).toContain(
    "· 28 blocks · durations × 0.1 · 112 trials: 84 not run.",
  );
  expect([enoughAfter({ ...early, state: "interrupted" }), enoughAfter({ ...early, trials_done: 112 })]).toEqual([
    null,
    null,
  ]);
});

test("a hostile name is cut and cannot turn the line round", () => {
  expect(runTitle({ ...RUN, suite: `\u202eevil${"x".repeat(1e6)}` })).toMatch(/ · �evilx{34}… · azure-a1 · /);
});
