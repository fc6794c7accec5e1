import { describe, expect, test } from "vitest";
import type { LatencyBin, LatencyQuantile, LatencyTrial } from "../../../../contract/latency";
import { logAxis } from "../../../charts/log-axis";
import { asText, traces, UNITS } from "../../../charts/test/golden";
import { added, ecdfFigure } from "../ecdf";
import { nines, percentile, percentilesFigure } from "../percentiles";
import { latencyOf, middle, overBlocks, type Profile, panelsOf, quantileOf } from "../points";
import { sizesFigure } from "../size";
import { valuesFigure } from "../values";
import deitcherRows from "./rows/latency-deitcher-2016.json";
import fullRows from "./rows/latency-full.json";

interface Recorded {
  run: { variants: string; nodes: string };
  trials: LatencyTrial[];
  quantiles: LatencyQuantile[];
  bins: LatencyBin[];
}

// netperf by request size in containers, an interrupted run; sockperf, ping and qperf on VMs: as the queries gave them.
const deitcher = deitcherRows as unknown as Recorded;
const full = fullRows as unknown as Recorded;

function chosen({ run, trials, quantiles, bins }: Recorded, wanted: Record<string, string> = {}) {
  const latency = latencyOf(trials, run, wanted);
  return {
    latency,
    panels: panelsOf(latency, run, quantiles, bins, latency.size),
    all: panelsOf(latency, run, quantiles, bins, null),
  };
}
const probe = (tool: string) => {
  const found = latencyOf(full.trials, full.run, {}).choices[0]?.options.find(({ label }) => label.startsWith(tool));
  if (!found) throw new Error(`no ${tool}`);
  return { probe: found.key };
};
const netperf = chosen(deitcher, { size: "1024" });
const sockperf = chosen(full, probe("sockperf"));
const qperf = chosen(full, probe("qperf"));

/** Two more overlays than the rows have, with names that are alike where a plot shortens them. */
const LONG = ["a", "b"].map((middle) => `${"long-".repeat(12)}${middle}${"-name".repeat(12)}`);

describe("choices", () => {
  test("tools say which loop they are", () => {
    expect(latencyOf(full.trials, full.run, {}).choices[0]?.options.map(({ label }) => label)).toEqual([
      "ping (open loop)",
      "qperf TCP_LAT (closed loop)",
      "sockperf UDP 500 messages/s (open loop)",
    ]);
  });

  test("between nodes and within one stand side by side, sizes by number", () => {
    expect(
      netperf.latency.choices.map(({ name, chosen: key, options }) => [name, key, options.map(({ label }) => label)]),
    ).toEqual([
      ["probe", '["netperf","tcp_rr",null,null]', ["netperf TCP_RR (closed loop)"]],
      ["ends", "*", ["both, side by side", "remote: node1 → node2", "local: within node1"]],
      [
        "size",
        "1024",
        [
          "300 bytes",
          "500 bytes",
          "1024 bytes",
          "2048 bytes",
          "8192 bytes",
          "16384 bytes",
          "32768 bytes",
          "65536 bytes",
        ],
      ],
    ]);
    expect(netperf.panels.map(({ title, series }) => [title, series.map(({ variant }) => variant.name)])).toEqual([
      ["remote: node1 → node2", ["host", "macvlan bridge"]],
      ["local: within node1", ["macvlan bridge"]],
    ]);
  });
});

describe("percentiles", () => {
  test("stand by their nines", () => {
    expect([0, 0.9, 0.99].map((quantile) => Number(nines(quantile).toFixed(9)))).toEqual([0, 1, 2]);
    expect([0.5, 0.99, 0.9999].map(percentile)).toEqual(["50 %", "99 %", "99.99 %"]);
  });

  const ofBlocks = (...values: number[]): Profile[] =>
    values.map((value, at) => ({
      trial: { ...(deitcher.trials[0] as LatencyTrial), block: at + 1 },
      points: [{ quantile: 0.99, value }],
    }));

  test("are never averaged: over blocks their median is taken, repetitions of a block being one", () => {
    const [first, second, third] = ofBlocks(1, 2, 90) as [Profile, Profile, Profile];
    const again = { ...first, points: [{ quantile: 0.99, value: 5 }] };
    const p99 = (profile: Profile) => quantileOf(profile, 0.99);
    expect(overBlocks([first, second, third], p99)).toEqual({ value: 2, blocks: 3 });
    expect(overBlocks([first, again, second], p99)).toEqual({ value: 2.5, blocks: 2 });
    expect(overBlocks([], p99)).toEqual({ value: null, blocks: 0 });
    expect(middle([4, 1])).toBe(2.5);
  });

  test("that a tool did not give are missing", () => {
    expect(quantileOf(ofBlocks(1)[0] as Profile, 0.999)).toBeNull();
  });

  test("read from bins agree with those of the samples to a bin's width; those of too few requests are none", () => {
    for (const { profiles } of sockperf.panels[0]?.series ?? []) {
      for (const profile of profiles) {
        const { p50, p99 } = profile.trial;
        expect(Math.abs((quantileOf(profile, 0.5) ?? 0) / (p50 as number) - 1)).toBeLessThan(0.012);
        expect(Math.abs((quantileOf(profile, 0.99) ?? 0) / (p99 as number) - 1)).toBeLessThan(0.05);
        expect(quantileOf(profile, 0.999)).toBeNull();
      }
    }
    expect(sockperf.panels[0]?.series.map(({ variant }) => variant.name)).toEqual(["host", "weave fastdp"]);
  });
});

test("a size that has no trial is a gap", () => {
  const figure = sizesFigure(netperf.latency, netperf.all, UNITS);
  const [hostLine] = traces(figure);
  expect(hostLine?.x).toEqual([300, 500, 1024, 2048, 8192, 16384, 32768, 65536]);
  expect(hostLine?.y[7]).toBeNull();
  expect(hostLine?.y[0]).toBeCloseTo(0.02, 6);
});

test("bins of trials are added, and all requests are in", () => {
  const trials = new Set(
    sockperf.panels[0]?.series.flatMap(({ profiles }) => profiles.map(({ trial }) => trial.trial_id)),
  );
  const both = added(full.bins, trials);
  expect(both.total).toBe(273 + 274);
  expect(both.steps[both.steps.length - 1]?.n).toBe(547);
  const figure = ecdfFigure(sockperf.latency, sockperf.panels, full.bins, UNITS);
  expect(traces(figure).map(({ y }) => [y[0], y[y.length - 1]])).toEqual([
    [0, 1],
    [0, 1],
  ]);
});

test("a logarithmic axis has labels that people read, also where all values are one", () => {
  expect(logAxis([1, 1000])).toMatchObject({ tickvals: [1, 3, 10, 30, 100, 300, 1000] });
  expect(logAxis([null, 0])).toEqual({ type: "log" });
  const [from, to] = logAxis([97]).range as [number, number];
  expect(to - from).toBeCloseTo(0.4, 9);
});

describe("golden figures", () => {
  test("percentiles of netperf", () =>
    expect(asText(percentilesFigure(netperf.latency, netperf.panels, UNITS))).toMatchFileSnapshot(
      "golden/latency-percentiles.json",
    ));
  test("by request size", () =>
    expect(asText(sizesFigure(netperf.latency, netperf.all, UNITS))).toMatchFileSnapshot("golden/latency-sizes.json"));
  test("percentiles of sockperf", () =>
    expect(asText(percentilesFigure(sockperf.latency, sockperf.panels, UNITS))).toMatchFileSnapshot(
      "golden/latency-percentiles-bins.json",
    ));
  test("distribution", () =>
    expect(asText(ecdfFigure(sockperf.latency, sockperf.panels, full.bins, UNITS))).toMatchFileSnapshot(
      "golden/latency-ecdf.json",
    ));
  test("single values", () =>
    expect(asText(valuesFigure(qperf.latency, qperf.panels, UNITS))).toMatchFileSnapshot("golden/latency-values.json"));
});

test("overlays whose shortened names are alike have a line each, and are told apart", () => {
  const [first] = full.trials.filter(({ tool }) => tool === "qperf");
  const trials = LONG.flatMap((overlay, at) =>
    full.trials
      .filter(({ tool, overlay: of }) => tool === "qperf" && of === first?.overlay)
      .map((row) => ({ ...row, overlay, mode: null, value: (at + 1) * 1e-3 })),
  );
  const { latency, panels } = chosen({ ...full, run: { ...full.run, variants: "[]" }, trials }, probe("qperf"));
  const figure = valuesFigure(latency, panels, UNITS);
  expect(traces(figure).map(({ x, y }) => [new Set(x), new Set(y)])).toEqual([
    [new Set([1]), new Set([0])],
    [new Set([2]), new Set([1])],
  ]);
  expect(figure.layout.yaxis?.ticktext).toEqual([
    "long-long-long-long-long-long-…name-name-name-name-name-name",
    "long-long-long-long-long-lon…me-name-name-name-name-name (2)",
  ]);
});
