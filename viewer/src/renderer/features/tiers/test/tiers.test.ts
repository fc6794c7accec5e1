import { describe, expect, test } from "vitest";
import type { TierCheckRow, TierPublishedRow } from "../../../../contract/tiers";
import { asText, traces } from "../../../charts/test/golden";
import { publishedOf } from "../../../lib/published";
import { measuredOverDeclared, tierChecks, verdictWords } from "../checks-figure";
import { fidelity, fidelityWords, lineName, linesOf } from "../fidelity";
import { mostChecked, newest, nodesOf } from "../newest";
import checkRows from "./rows/tier-checks.json";
import publishedRows from "./rows/tier-published.json";

// As the queries gave them: bench:profiles on emulated nodes, and ten runs of bench:fidelity.
const checks = checkRows as TierCheckRow[];
const published = publishedRows as TierPublishedRow[];
const [first] = checks as [TierCheckRow, ...TierCheckRow[]];

describe("measured against declared", () => {
  test("as a person has looked at it", async () => {
    await expect(asText(tierChecks(checks, false))).toMatchFileSnapshot("golden/tier-checks.json");
  });

  test("what an accelerator cannot carry is no failure", () => {
    const figure = tierChecks(checks, false);
    const names = traces(figure).map(({ name }) => name);
    expect(names).toEqual(["allowed", "passed (13)", "failed (1)", "not applicable here (4)"]);
    expect(verdictWords("not-applicable")).toBe("not applicable here");
    expect(figure.summary).toBe("13 passed, 1 failed, 4 not applicable here");
  });

  test("what is missing, or has nothing to be divided by, is not drawn", () => {
    expect(measuredOverDeclared({ expected: null, measured: 3 })).toBeNull();
    expect(measuredOverDeclared({ expected: 4, measured: null })).toBeNull();
    expect(measuredOverDeclared({ expected: 0, measured: 0 })).toBeNull();
    expect(measuredOverDeclared({ expected: 4, measured: 3 })).toBe(0.75);
  });

  test("a bound allows all below it, a tolerance both sides, and what is counted has its interval", () => {
    const rows: TierCheckRow[] = [
      { ...first, name: "rtt-loaded", expected: 2, measured: 1, tolerance: 0, verdict: "pass" },
      {
        ...first,
        name: "loss",
        expected: 0.02,
        measured: 0.03,
        tolerance: 0.004,
        verdict: "fail",
        low: 0.02,
        high: 0.05,
      },
      { ...first, name: "vcpus", expected: 4, measured: 1, tolerance: null, verdict: "not-applicable" },
    ];
    const [band, ...points] = tierChecks(rows, false).data as unknown as {
      error_x: { array: number[]; arrayminus: number[] };
    }[];
    expect(band?.error_x.array).toEqual([0, 0.2, 0]);
    expect(band?.error_x.arrayminus).toEqual([1, 0.2, 0]);
    expect(points.map(({ error_x }) => [error_x.arrayminus[0]?.toFixed(6), error_x.array[0]?.toFixed(6)])).toEqual([
      ["0.000000", "0.000000"],
      ["0.500000", "1.000000"],
      ["0.000000", "0.000000"],
    ]);
  });

  test("the nodes on which most profiles were checked, else the newest", () => {
    const newer = { ...first, accelerator: "shared-kernel" };
    const another = { ...first, profile: "another" };
    expect(mostChecked([newer, first, another])).toBe(nodesOf(first));
    expect(mostChecked([newer, first])).toBe(nodesOf(newer));
    expect(mostChecked([])).toBeNull();
  });

  test("the newest run of each profile", () => {
    const old = { ...first, run_id: "before", check_id: 0 };
    expect(newest([...checks, old])).toEqual(checks);
  });

  test("a hostile name is text, and short", () => {
    const text = JSON.stringify(
      tierChecks([{ ...first, name: `<b onmouseover=x>${"y".repeat(1e6)}`, reason: "<a href=//x>" }], false).data,
    );
    expect(text).not.toMatch(/<(?!br>|extra><\/extra>|\/extra>)/);
    expect(text.length).toBeLessThan(5000);
  });
});

describe("published against measured", () => {
  const lines = linesOf(published, publishedOf).filter(({ row }) => row.metric === "goodput");

  test("as a person has looked at it", async () => {
    await expect(asText(fidelity(lines, "goodput"))).toMatchFileSnapshot("golden/tier-fidelity.json");
  });

  test("ticks are numbers that people read, from end to end", () => {
    const { xaxis } = fidelity(lines, "goodput").layout;
    expect(xaxis?.ticktext).toEqual(["0.05", "0.1", "0.2", "0.5", "1"]);
    expect(xaxis).not.toHaveProperty("dtick");
  });

  test("each pair once, with the run that was measured as printed", () => {
    expect(lines.map((line) => [lineName(line), line.row.run_id.slice(9, 15), fidelityWords(line)])).toEqual([
      ["aws-t2.medium weave sleeve", "142233", "not reproducible"],
      ["aws-t2.medium weave sleeve MTU 8950", "143225", "not reproducible"],
      ["aws-t2.medium weave fastdp MTU 8950", "143225", "not reproducible"],
      ["aws-t2.medium weave fastdp MTU 1410", "142719", "not reproducible"],
      ["azure-a0 weave sleeve", "135542", "cannot tell"],
    ]);
  });

  test("nothing is claimed of a run that has not ended", () => {
    const [line] = lines;
    if (!line) throw new Error("no line");
    expect(fidelityWords({ ...line, row: { ...line.row, provisional: 1 } })).toBe("no verdict before the run ends");
    expect(fidelityWords({ ...line, pair: { ...line.pair, verdict: null } })).toBe("not judged");
  });

  test("JSON of another shape gives no line, and no error", () => {
    expect(publishedOf('[{"ratio": "1"}]')).toEqual([]);
    expect(linesOf([{ ...(published[0] as TierPublishedRow), published: "no JSON" }], publishedOf)).toEqual([]);
  });
});
