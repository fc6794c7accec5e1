import { describe, expect, test } from "vitest";
import type { LoadMedian, LoadTrial } from "../../../../contract/load";
import { asText, traces, UNITS } from "../../../charts/test/golden";
import { loadFigure } from "../figure";
import { carried, highest, highestFigure } from "../highest";
import { lossAxis, lossShown } from "../loss-axis";
import { againstHost, contradicts, isOff, type Load, loadOf, percent } from "../points";
import type { LoadOptions } from "../table";
import skybetRows from "./rows/load-skybet-2017.json";
import weaveRows from "./rows/load-weave-vs-flannel-2016.json";

interface Recorded {
  run: { variants: string; nodes: string };
  trials: LoadTrial[];
  medians: LoadMedian[];
}

// Three zones on VMs, and a sweep of datagrams: as the queries gave them.
const skybet = skybetRows as unknown as Recorded;
const weave = weaveRows as unknown as Recorded;

const of = ({ trials, medians, run }: Recorded, wanted: Record<string, string> = {}) =>
  loadOf(trials, medians, run, wanted, (rate) => `${rate / 1e6} Mbit/s`);

const ABSOLUTE: LoadOptions = {
  metric: "goodput",
  normalised: false,
  rateAxis: "log",
  lossScale: "whole",
  units: UNITS,
};
const path = of(skybet);
const eight = of(skybet, { datagram: "8192" });
const variant = (load: Load, name: string) => {
  const found = load.series.find((series) => series.variant.name === name);
  if (!found) throw new Error(`no ${name}`);
  return found;
};

describe("choices", () => {
  test("are the pairs of zones and the sizes of datagrams; what has one value is no choice to make", () => {
    expect(path.choices.map(({ name, options }) => [name, options.map(({ label }) => label)])).toEqual([
      ["ends", ["remote: node1 → node2, a → b", "remote: node1 → node3, a → c"]],
      ["against", ["offered load"]],
      ["datagram", ["largest that fits the path", "8192 bytes"]],
      ["tool", ["iperf3"]],
      ["streams", ["1"]],
    ]);
    expect(path.of).toBe("remote: node1 → node2, a → b; datagrams: largest that fits the path; iperf3");
  });

  test("at one load the size of datagrams is the axis, of the tool that took several", () => {
    const load = of(weave);
    expect(load.against).toBe("datagram");
    expect(load.steps).toEqual([64, 512, 1024, 1470, 1472, 8192]);
    expect(load.choices.find(({ name }) => name === "tool")).toMatchObject({ chosen: "iperf3" });
    expect(of(weave, { against: "load" }).of).toContain("largest that fits the path");
  });
});

describe("what is drawn", () => {
  test("x is what was really offered, hollow where that is more than 5 % off what was asked", () => {
    const [, , host] = traces(loadFigure(path, ABSOLUTE));
    expect(host?.name).toBe("host");
    expect(host?.x.map((x) => Math.round(x ?? -1))).toEqual([1, 10, 100, 207, 225]);
    expect(host?.marker?.symbol).toEqual(["circle", "circle", "circle", "circle-open", "circle-open"]);
    expect(path.rows.filter(isOff).map(({ trial_id }) => trial_id)).toEqual([193, 195, 221, 223, 225]);
  });

  test("a load whose trials failed is a gap in the line, not zero and no dot", () => {
    const [, line, dots] = traces(loadFigure(eight, ABSOLUTE));
    expect(line?.mode).toBe("lines");
    expect(line?.y).toHaveLength(5);
    expect(line?.y[4]).toBeNull();
    expect(dots?.y).toHaveLength(4);
    expect(eight.rows.filter(({ status }) => status === "failed")).toHaveLength(2);
  });

  test("a withdrawn trial is no dot either", () => {
    const load = of(weave);
    const [line, dots] = traces(loadFigure(load, ABSOLUTE));
    expect(line?.y[4]).toBeNull();
    expect(dots?.x).toEqual([64, 512, 1024, 1470, 8192]);
  });

  test("zero loss stands on every loss axis, and is told from a little", () => {
    const shown = (value: number) => lossShown({ metric: "loss", normalised: false, lossScale: "small" }, value);
    expect(shown(0)).toBe(0);
    expect(shown(1e-4)).toBeCloseTo(0.301, 3);
    expect(lossAxis("whole", [0, 0.5])).toMatchObject({ range: [-0.03, 1.05] });
    expect(lossAxis("zoomed", [0, 0.5])).toMatchObject({ range: [-0.015, 0.525] });
    expect([percent(0), percent(2.5e-7), percent(0.00001), percent(0.35483), percent(null)]).toEqual([
      "0\u00a0%",
      "0.000025\u00a0%",
      "0.001\u00a0%",
      "35.5\u00a0%",
      "–",
    ]);
  });
});

describe("the line of all that is offered", () => {
  const lineOf = (load: Load, rateAxis: LoadOptions["rateAxis"]) => {
    const [line] = traces(loadFigure(load, { ...ABSOLUTE, rateAxis }));
    expect(line?.name).toBe("all that is offered");
    return (line?.x ?? []).map((x, at) => [x ?? NaN, line?.y[at] ?? NaN] as const);
  };
  const offered = path.rows.flatMap((row) => row.offered ?? []);

  test("has delivered = offered at every point, and enough of them for a linear axis beside a logarithmic one", () => {
    const points = lineOf(path, "linear");
    expect(points).toHaveLength(60);
    for (const [x, y] of points) expect(y).toBeCloseTo(x, 9);
    expect(points[0]?.[0]).toBeCloseTo(Math.min(...offered) / 1e6, 9);
    expect(points[59]?.[0]).toBeCloseTo(Math.max(...offered) / 1e6, 9);
    expect((points[1]?.[0] ?? NaN) / (points[0]?.[0] ?? NaN)).toBeCloseTo(
      (Math.max(...offered) / Math.min(...offered)) ** (1 / 59),
      9,
    );
  });

  test("stays so where what arrived takes another unit than what was offered", () => {
    // Of 1 to 225 Mbit/s so little arrives that it is told in kbit/s.
    const little = { ...skybet, trials: skybet.trials.map((row) => ({ ...row, goodput: 5e3 })) };
    for (const [x, y] of lineOf(of(little), "log")) expect(y / (x * 1e3)).toBeCloseTo(1, 9);
  });
});

describe("against the host of the same block", () => {
  const trial = (id: number) => {
    const found = skybet.trials.find(({ trial_id }) => trial_id === id);
    if (!found) throw new Error(`no trial ${id}`);
    return found;
  };

  test("goodput is a quotient, loss a difference", () => {
    expect(againstHost(path, "goodput", trial(223))).toBeCloseTo(88251011.3 / 96754281.6, 6);
    expect(againstHost(path, "loss", trial(223))).toBeCloseTo(0.035618 - 0.523934, 5);
  });

  test("without the host's trial there is no value", () => {
    const without = of({ ...skybet, trials: skybet.trials.filter(({ trial_id }) => trial_id !== 193) });
    expect(againstHost(without, "goodput", trial(223))).toBeNull();
  });

  test("the host is the line at 1, and intervals are drawn where the tables have them", () => {
    const options: LoadOptions = { ...ABSOLUTE, normalised: true };
    expect(traces(loadFigure(path, options)).map(({ name }) => name)).toEqual(Array(3).fill("weave fastdp"));
    // Recorded runs have one block: an interval is put in by hand.
    const medians = skybet.medians.map((row) =>
      row.benchmark === "udp-100-path" && row.metric === "goodput" && row.overlay === "weave"
        ? { ...row, ratio: 0.5, interval_low: 0.4, interval_high: 0.7 }
        : row,
    );
    const [line] = loadFigure(of({ ...skybet, medians }), options).data as unknown as {
      error_y: { array: number[]; arrayminus: number[] };
    }[];
    expect(line?.error_y.array.map((up) => Number(up.toFixed(6)))).toEqual([0, 0, 0.2, 0, 0]);
    expect(line?.error_y.arrayminus.map((down) => Number(down.toFixed(6)))).toEqual([0, 0, 0.1, 0, 0]);
  });
});

describe("highest rate reached", () => {
  test("is the largest median goodput, with what was lost there", () => {
    const found = highest(variant(path, "host"));
    expect(found?.goodput).toBeCloseTo(97533273.2, 0);
    expect(found?.loss).toBeCloseTo(0.557095, 6);
  });

  test("and the highest load with no more than a share lost depends on the share", () => {
    const weaveFastdp = variant(path, "weave fastdp");
    expect([0.001, 0.01, 0.05].map((share) => Math.round((carried(weaveFastdp, share) ?? 0) / 1e6))).toEqual([
      10, 47, 92,
    ]);
    expect(carried({ ...weaveFastdp, medians: new Map() }, 0.05)).toBeNull();
  });
});

test("overlays whose shortened names are alike have a line of the highest rates each", () => {
  const [one, other] = ["a", "b"].map((middle) => `${"long-".repeat(12)}${middle}${"-name".repeat(12)}`);
  const renamed = <Row extends { overlay: string }>(rows: Row[]): Row[] =>
    rows.map((row) => ({ ...row, overlay: (row.overlay === "host" ? one : other) as string, mode: null }));
  const load = of({
    run: { ...skybet.run, variants: "[]" },
    trials: renamed(skybet.trials),
    medians: renamed(skybet.medians),
  });
  const figure = highestFigure(load, { normalised: false, share: 0.01, units: UNITS });
  const [a, b, strokes] = traces(figure);
  expect([a, b, strokes].map((trace) => [...new Set(trace?.y)])).toEqual([[0], [1], [0, 1]]);
  expect(new Set(figure.layout.yaxis?.ticktext).size).toBe(2);
});

test("a loss that what arrived contradicts carries no load", () => {
  // Recorded: of 302 Mbit/s 89 % were lost by the tool's count, and 7 arrived, not 33.
  const trial = skybet.trials.find(({ trial_id }) => trial_id === 192);
  expect(trial && contradicts(trial)).toBe(true);
  expect(skybet.trials.filter(contradicts).map(({ trial_id }) => trial_id)).toEqual([192, 222]);
  const medians = skybet.medians.map((row) =>
    row.benchmark === "udp-1000-8k" && row.metric === "loss" ? { ...row, median: 0 } : row,
  );
  const load = of({ ...skybet, medians }, { datagram: "8192" });
  expect(Math.round((carried(variant(load, "host"), 0.01) ?? 0) / 1e6)).toBe(10);
});

test("before a block has ended there are dots, and no line", () => {
  const load = of({ ...skybet, medians: [] });
  const lines = traces(loadFigure(load, ABSOLUTE)).filter(
    ({ mode, name }) => mode === "lines" && name !== "all that is offered",
  );
  expect(lines.flatMap(({ y }) => y.filter((each) => each !== null))).toEqual([]);
  expect(highest(variant(load, "host"))).toBeNull();
  expect(() => highestFigure(load, { normalised: false, share: 0.01, units: UNITS })).not.toThrow();
});

test("hostile names are text", () => {
  const trials = skybet.trials.map((trial) => ({
    ...trial,
    overlay: trial.overlay === "weave" ? "<img src=x>\u202e" : trial.overlay,
  }));
  const text = asText(loadFigure(of({ ...skybet, trials }), ABSOLUTE));
  expect(text).toContain("&lt;img src=x&gt;");
  expect(text).not.toContain("\u202e");
});

describe("golden figures", () => {
  for (const [name, load, options] of [
    ["goodput", path, ABSOLUTE],
    ["loss-small", eight, { ...ABSOLUTE, metric: "loss", lossScale: "small" }],
    ["jitter-ratio", path, { ...ABSOLUTE, metric: "jitter", normalised: true }],
    ["loss-difference", path, { ...ABSOLUTE, metric: "loss", normalised: true }],
    ["datagram-goodput", of(weave), ABSOLUTE],
  ] as const satisfies readonly (readonly [string, Load, LoadOptions])[]) {
    test(name, () => expect(asText(loadFigure(load, options))).toMatchFileSnapshot(`golden/load-${name}.json`));
  }
  test("highest", () =>
    expect(asText(highestFigure(path, { normalised: false, share: 0.01, units: UNITS }))).toMatchFileSnapshot(
      "golden/load-highest.json",
    ));
  test("highest as ratio", () =>
    expect(asText(highestFigure(path, { normalised: true, share: 0.01, units: UNITS }))).toMatchFileSnapshot(
      "golden/load-highest-ratio.json",
    ));
});
