import { expect, test } from "vitest";
import type { TimeBucketRow, TimePointRow, TimeTrialRow } from "../../../../contract/time";
import { asText, traces, UNITS } from "../../../charts/test/golden";
import { type Placed, placedVariants } from "../../../lib/variants";
import { budget } from "../budget";
import { bucketWords, stallsOf, timeFigure } from "../figure";
import rows from "./rows/time-aws-t2.medium.json";

const trials = rows.trials as TimeTrialRow[];
const points = rows.points as TimePointRow[];
const buckets = rows.buckets as TimeBucketRow[];
const placed = (variants: [string, string | null][]) => {
  const asked = variants.map(([overlay, mode]) => ({ overlay, mode, encrypted: false }));
  return [...placedVariants({ variants: JSON.stringify(asked) }, []).values()];
};
const VARIANTS = placed([
  ["host", null],
  ["weave", "sleeve"],
  ["weave", "fastdp"],
]);

const figure = (
  its: TimePointRow[],
  of = trials,
  metric = "goodput",
  unit = "bit/s",
  variants: readonly Placed[] = VARIANTS,
) =>
  timeFigure({
    what: "tcp-goodput",
    metric,
    unit,
    points: its,
    trials: of,
    variants,
    buckets,
    until: 4,
    settings: UNITS,
  });

test("one line for each trial, aligned at its start, with the omitted second and the sustained rate", async () => {
  await expect(asText(figure(points))).toMatchFileSnapshot("golden/time-goodput.json");
});

const trial = (part: Partial<TimeTrialRow>): TimeTrialRow => ({ ...(trials[0] as TimeTrialRow), omit: null, ...part });
const interval = (t_start: number, value: number, part: Partial<TimePointRow> = {}): TimePointRow => ({
  ...(points[0] as TimePointRow),
  trial_id: 1,
  t_start,
  t_end: t_start + 1,
  low: value,
  middle: value,
  high: value,
  ...part,
});

test("what was not measured breaks the line; what did not arrive is zero and marked", () => {
  const its = [interval(0, 2e6), interval(1, 0), interval(4, 2e6)];
  const [line, mark] = traces(figure(its, [trial({ trial_id: 1 })]));
  expect(line?.x).toEqual([0, 1, 2, null, 4, 5]);
  expect(line?.y).toEqual([2, 0, 0, null, 2, 2]);
  expect(mark).toMatchObject({ mode: "markers", x: [1.5], y: [0] });
  expect(stallsOf(its)).toBe(1);
});

test("a message's latency is a point; several times the usual distance without one breaks the line", () => {
  const at = [0, 0.1, 0.2, 0.3, 1.3, 1.4];
  const its = at.map((t) => interval(t, 1e-3, { t_end: t + 1e-3, metric: "latency_rtt", unit: "s" }));
  const [line] = traces(figure(its, [trial({ trial_id: 1, metric: "latency_rtt", unit: "s" })], "latency_rtt", "s"));
  expect(line?.x).toEqual([0, 0.1, 0.2, 0.3, null, 1.3, 1.4]);
});

test("loss is a share, retransmits are counted in each interval", () => {
  const drawn = (metric: string, unit: string, value: number) =>
    figure([interval(0, value, { metric, unit })], [trial({ trial_id: 1, metric, unit })], metric, unit);
  const loss = drawn("loss", "ratio", 0.19);
  expect(loss.title).toBe("Loss within each trial (share of datagrams): tcp-goodput; 1 trial in 1 block");
  expect(loss.layout.yaxis).toMatchObject({
    tickformat: ".3~%",
    title: { text: "lost, of the datagrams of each interval" },
  });
  expect(traces(loss)[0]).toMatchObject({
    x: [0, 1],
    y: [0.19, 0.19],
    hovertemplate: expect.stringContaining("%{y:.3~%}"),
  });
  const again = drawn("retransmits", "1", 4879);
  expect(again.title).toBe("Retransmits within each trial (segments): tcp-goodput; 1 trial in 1 block");
  expect(traces(again)[0]?.y).toEqual([4879, 4879]);
  expect(again.layout.yaxis).not.toHaveProperty("tickformat");
});

test("a bucket is told in bytes above a rate", () => {
  const t2Small = { trial_id: 1, capacity: 31.76e9, sustained: 125e6, before: null, after: null };
  expect(bucketWords(t2Small, UNITS)).toBe("The sender's bucket: 31.76 GB above 125 Mbit/s");
});

test("slices have a band from the smallest to the largest value", () => {
  const its = [interval(0, 2e6, { low: 1e6, high: 3e6, n: 50 }), interval(1, 4e6, { low: 4e6, high: 6e6, n: 50 })];
  const [band, line] = traces(figure(its, [trial({ trial_id: 1 })]));
  expect(band?.x).toEqual([0, 1, 1, 0]);
  expect(band?.y).toEqual([3, 6, 4, 1]);
  expect(line?.y).toEqual([2, 4]);
});

test("a colour is an overlay's, whatever else is chosen", () => {
  const only = trials.filter(({ mode }) => mode === "fastdp");
  const [line] = figure(points, only).data as { line?: { color?: string }; name?: string }[];
  expect([line?.name, line?.line?.color]).toEqual(["weave fastdp", "#009e73"]);
});

test("overlays whose long names begin alike have a colour, a place in the legend and a name each", () => {
  const overlays = ["one", "two"].map((end) => `${"a-long-name-of-an-overlay-".repeat(3)}${end}`);
  const of = overlays.map((overlay, at) => trial({ trial_id: at + 1, overlay, mode: null }));
  const its = [1, 2].map((trial_id) => interval(0, 2e6, { trial_id }));
  const variants = placed([["host", null], ...overlays.map((overlay): [string, null] => [overlay, null])]);
  const drawn = figure(its, of, "goodput", "bit/s", variants).data as unknown as {
    name: string;
    showlegend: boolean;
    line: { color: string };
  }[];
  expect(drawn.slice(0, 2).map(({ name, showlegend, line }) => [name, showlegend, line.color])).toEqual([
    ["a-long-name-of-an…f-an-overlay-one", true, "#e69f00"],
    ["a-long-name-of-an…f-an-overlay-two", true, "#009e73"],
  ]);
});

test("blocks are read as long as there is room, the first one always", () => {
  const of = (trial_id: number, block: number, n: number) => trial({ trial_id, block, n, duration: 60 });
  const small = budget([of(1, 1, 60), of(2, 2, 60)]);
  expect([small.whole, small.sliced, small.leftOut]).toEqual([[1, 2], [], []]);
  const large = budget([of(1, 1, 90_000), of(2, 2, 90_000), of(3, 3, 60)]);
  expect([large.whole, large.sliced, large.leftOut]).toEqual([[], [1], [2, 3]]);
  expect([large.most, large.slices]).toEqual([2000, 500]);
  const huge = budget([of(1, 1, 1_000_000), of(2, 1, 1_000_000)]);
  expect([huge.sliced, huge.leftOut]).toEqual([[1], [1]]);
});

test("what is no measurement is named in the legend, after the overlays; a bucket only where rates are drawn", () => {
  const its = [interval(1, 2e6)];
  const of = [trial({ trial_id: 1, omit: 1 })];
  const guides = (drawn: ReturnType<typeof figure>) =>
    traces(drawn)
      .slice(1)
      .map(({ name, x, y }) => [name, x, y]);
  const omitted = ["omitted: the first 1 s", [null], [null]];
  const rate = [0, 4].map(() => buckets[0]?.sustained as number).map((value) => value / 1e6);
  expect(guides(figure(its, of))).toEqual([["sustained rate, bucket empty", [0, 4], rate], omitted]);
  expect(guides(figure(its, of, "retransmits", "1"))).toEqual([omitted]);
  expect(figure(its, of).layout).not.toHaveProperty("annotations");
  expect(figure(its, of).layout.margin).toEqual(figure(its, of, "retransmits", "1").layout.margin);
});
