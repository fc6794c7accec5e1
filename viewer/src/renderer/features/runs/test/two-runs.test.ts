/** The viewer computes what overlaylab computes: provision/tests/support/two_runs.py writes what that says. */
import { describe, expect, test } from "vitest";
import type { RunRow } from "../../../../contract/run";
import type { RunTableRow, RunValueRow } from "../../../../contract/runs";
import { asText, UNITS } from "../../../charts/test/golden";
import { compare, pairsOf, series, type Variant, worded } from "../compare";
import { type Against, changeWords, differences, sideBySide } from "../figure";
import { changed, changedMtus, hindrances, rulesOf } from "../hindrances";
import { median, type Series, shift, shiftRank } from "../mann-whitney";
import { bothOf, overlaysOf } from "../variants";
import python from "./golden/two-runs.json";
import recorded from "./rows/two-runs.json";

interface Case {
  name: string;
  runs: [RunRow, RunRow];
  tables: [RunTableRow[], RunTableRow[]];
  values: [RunValueRow[], RunValueRow[]];
  expected: Record<string, unknown> & { changes: object[]; margin: number; shares: number };
}

/** The same to nine digits: logarithms differ in the last ones. */
const near = (found: unknown): unknown => {
  if (typeof found === "number") return Number(found.toPrecision(9));
  if (Array.isArray(found)) return found.map(near);
  if (typeof found === "object" && found !== null)
    return Object.fromEntries(Object.entries(found).map(([name, each]) => [name, near(each)]));
  return found;
};

describe("two series", () => {
  test.each(
    python.shifts.map((each) => [`${each.first.length} and ${each.second.length}`, each] as const),
  )("of %s values", (_, given) => {
    const found = shift(given.first as unknown as Series, given.second as unknown as Series, given.alpha);
    expect(near(found)).toEqual(near(given.expected));
  });

  test("six and six: the smallest interval there is, by the book", () => {
    // P(U < 6) = 19 / 924, the first beyond 0.025 being P(U ≤ 6) = 30 / 924.
    expect(shiftRank(6, 6, 0.05)).toEqual({ rank: 6, coverage: 1 - (2 * 19) / 924 });
    expect(shiftRank(5, 100, 0.05)).toBeNull();
    expect(shiftRank(6, 6, 0.001)).toBeNull();
  });

  test("zero, as a logarithm, lies below everything and beside itself", () => {
    const exact = (...values: number[]): Series => values.map((value) => [value, value, value] as const);
    const none = Number.NEGATIVE_INFINITY;
    const some = exact(0, 1, 2, 3, 4, 5);
    const zero = exact(none, none, none, none, none, none);
    expect(shift(some, zero, 0.05)).toMatchObject({ estimate: none, interval: { low: none, high: none } });
    expect(shift(zero, zero, 0.05)).toMatchObject({ estimate: 0, interval: { low: 0, high: 0 } });
    expect(shift(exact(none, 1), exact(1, none), 0.05).estimate).toBe(0);
  });

  test("a median of nothing is an error, not zero", () => {
    expect(() => median([])).toThrow(RangeError);
    expect(median([3, 1, 2, 10])).toBe(2.5);
  });
});

describe("two runs", () => {
  test("runs that share only the host share no overlay", () => {
    const of = (overlay: string) => ({
      variants: JSON.stringify(["host", overlay].map((name) => ({ overlay: name, mode: null, encrypted: false }))),
    });
    expect(overlaysOf(bothOf([of("weave"), of("macvlan")]))).toEqual([]);
    expect(overlaysOf(bothOf([of("weave"), of("weave")]))).toEqual([{ overlay: "weave", mode: null, encrypted: 0 }]);
  });

  test.each((python.cases as unknown as Case[]).map((each) => [each.name, each] as const))("%s", (_, {
    runs,
    tables,
    values,
    expected,
  }) => {
    const rules = rulesOf(...runs);
    const unit = tables[0][0]?.unit ?? "";
    expect(hindrances(...runs)).toEqual(expected.hindrances);
    expect(changed(...runs)).toEqual(expected.changed);
    expect(rules).toEqual({ margin: expected.margin, shares: expected.shares });
    expect(near(compare(...values, bothOf(runs), unit, rules))).toEqual(near(expected.changes));
  });

  test("words are those of the metric", () => {
    expect(worded("lower", "goodput", "higher")).toBe("slower");
    expect(worded("lower", "latency_rtt", "lower")).toBe("faster");
    expect(worded("higher", "loss", "lower")).toBe("worse");
    expect(worded("cannot tell", "loss", "lower")).toBe("cannot tell");
  });

  test("a host of zero is no base, and a count has none", () => {
    const row = { trial_id: 1, block: 1, mode: null, encrypted: 0, overlay_mtu: null, resolution: null };
    const of = series([
      { ...row, overlay: "host", value: 0 },
      { ...row, overlay: "weave", value: 5 },
    ]);
    const [host, own] = [...of.values()];
    if (!host || !own) throw new Error("two variants");
    expect(pairsOf(own, host, "s")).toBeNull();
    host.blocks.set(1, 10);
    expect(pairsOf(own, host, "s")).toEqual([[5, 10]]);
    expect(pairsOf(own, host, "1")).toBeNull();
  });
});

test("variants that only one run was asked for are not compared", () => {
  const variants = (of: object[]): Pick<RunRow, "variants"> => ({ variants: JSON.stringify(of) });
  const [host, sleeve] = [
    { overlay: "host", mode: null, encrypted: false },
    { overlay: "weave", mode: "sleeve", encrypted: true },
  ];
  expect(bothOf([variants([host, sleeve]), variants([host])])).toEqual<Variant[]>([
    { overlay: "host", mode: null, encrypted: 0 },
  ]);
  expect(bothOf([variants([host]), { variants: "broken" }])).toEqual([]);
});

describe("plots of recorded runs", () => {
  const runs = recorded.runs as unknown as RunRow[];
  const values = recorded.values as Record<string, RunValueRow[]>;
  const table = recorded.table as RunTableRow;
  const of = (tail: string): [RunRow, RunValueRow[]] => {
    const run = runs.find(({ run_id }) => run_id.endsWith(tail));
    if (!run) throw new Error(`no run ${tail}`);
    return [run, values[run.run_id] ?? []];
  };
  // aws-t2.medium with fastdp at an MTU of 1410 and at 8950, and azure-a1 with sleeve.
  const [small, large, other] = [of("f6fd"), of("e551"), of("1f0a")] as const;
  const against = ([run, rows]: [RunRow, RunValueRow[]], second: [RunRow, RunValueRow[]], name: string): Against => {
    const rules = rulesOf(run, second[0]);
    const hindered = hindrances(run, second[0]).length > 0;
    return { name, rules, hindered, changes: compare(rows, second[1], bothOf([run, second[0]]), table.unit, rules) };
  };

  test("as a person has looked at them", async () => {
    const found = against(small, large, "second");
    await expect(asText(differences("first", [found], table, UNITS))).toMatchFileSnapshot(
      "golden/two-runs-differences.json",
    );
    const sides = [small, large].map(([run, rows], at) => ({
      name: `run ${at + 1}`,
      rows,
      behind: (trial: number) => [run.run_id, trial],
    }));
    const figure = sideBySide(sides, bothOf([small[0], large[0]]), table, UNITS);
    await expect(asText(figure)).toMatchFileSnapshot("golden/two-runs-side-by-side.json");
  });

  test("the title says how many blocks the differences rest on", () => {
    const found = against(small, large, "second");
    const title = (n: number) =>
      differences(
        "first",
        [{ ...found, changes: found.changes.map((change) => ({ ...change, second: { ...change.second, n } })) }],
        table,
        UNITS,
      ).title;
    const [n] = found.changes.map(({ first }) => first.n);
    expect(n).toBe(6);
    expect(title(6)).toMatch(/\(ratio, with its interval\); 6 blocks each$/);
    expect(title(9)).toMatch(/; 6 to 9 blocks$/);
  });

  test("a large MTU made fastdp three times as fast", () => {
    const found = against(small, large, "second");
    expect(
      found.changes.map((change) => [
        change.mode,
        change.estimate?.toFixed(2),
        changeWords(change, table, found.hindered),
      ]),
    ).toEqual([["fastdp", "3.27", "faster"]]);
    expect(changedMtus(small[1], large[1])).toEqual(["another MTU of weave fastdp: 1410, then 8950"]);
    expect(changedMtus(small[1], small[1])).toEqual([]);
  });

  test("another profile: a warning, and no verdict whatever the interval", () => {
    const found = against(large, other, "other");
    expect(hindrances(large[0], other[0])).toEqual(["another profile: aws-t2.medium, then azure-a1"]);
    expect(
      found.changes.map((change) => [
        change.mode,
        change.interval !== null,
        changeWords(change, table, found.hindered),
      ]),
    ).toEqual([["sleeve", true, "none: not to be compared"]]);
  });
});
