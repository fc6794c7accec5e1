import { describe, expect, test } from "vitest";
import type { PublicationFlawRow, PublicationValueRow } from "../../../../contract/publications";
import { asText, traces, UNITS } from "../../../charts/test/golden";
import { flawsOf, linesOf, publication, ratioOf } from "../figure";
import recorded from "./rows/publications.json";

// db/published.csv and db/published_flaws.csv, as the queries gave them.
const values = recorded.values as PublicationValueRow[];
const flaws = recorded.flaws as PublicationFlawRow[];
const of = (name: string, metric: string, protocol = "tcp"): PublicationValueRow[] =>
  values.filter((row) => row.publication === name && row.metric === metric && row.protocol === protocol);

describe("a publication's figures", () => {
  test.each([
    ["ukti-2016", "goodput", "tcp"],
    ["schaaf-2015", "latency_one_way", "tcp"],
    ["weave-vs-flannel-2016", "loss", "udp"],
  ])("%s, %s, as a person has looked at it", async (name, metric, protocol) => {
    const figure = publication(linesOf(of(name, metric, protocol)), UNITS);
    await expect(asText(figure)).toMatchFileSnapshot(`golden/publication-${name}-${metric}.json`);
  });

  test("single runs are dots, over the mean of their own host", () => {
    const lines = linesOf(of("ukti-2016", "goodput"));
    const [host, overlay] = lines;
    expect(host?.rows.map(({ value }) => value)).toEqual([934e6, 892e6, 832e6]);
    expect(host?.host).toBeCloseTo(886e6, -3);
    // It prints 33 %; the means of its runs make 30.6 %.
    expect(overlay && ratioOf(overlay)).toBeCloseTo(0.306, 3);
    const [overlays] = traces(publication(lines, UNITS));
    expect(overlays?.x.slice(0, 3).map((x) => x?.toFixed(4))).toEqual(
      overlay?.rows.map(({ value }) => (value / 886e6).toFixed(4)),
    );
  });

  test("a share has no ratio, and is drawn as it was printed", () => {
    const lines = linesOf(of("weave-vs-flannel-2016", "loss", "udp"));
    expect(lines.map(ratioOf)).toEqual(lines.map(() => null));
    expect(publication(lines, UNITS).title).toContain("UDP loss, share");
  });

  test("what a cloud documents is no measurement, and no host no ratio", () => {
    expect(linesOf(values.filter(({ metric }) => metric === "documented_cap"))).toEqual([]);
    const alone = linesOf(of("ukti-2016", "goodput").filter(({ overlay }) => overlay !== "host"));
    expect(alone.map(({ host }) => host)).toEqual([null, null, null]);
    expect(publication(alone, UNITS).title).toContain("Mbit/s");
  });
});

describe("what is wrong with them", () => {
  const sentences = (rows: PublicationValueRow[]): string[] =>
    flawsOf(flaws, rows).map(({ flaw }) => flaw.slice(0, 24));

  test("those that concern what is shown", () => {
    expect(sentences(of("ukti-2016", "goodput").filter(({ instance }) => instance === "t2.small"))).toEqual([
      "Host and overlay took di",
      "It prints 33 %; the mean",
    ]);
    expect(sentences(of("schaaf-2015", "goodput").filter(({ instance }) => instance === "A2"))).toEqual([]);
    expect(sentences(of("weave-vs-flannel-2016", "loss", "udp"))).toEqual([
      "The host's run was offer",
      "Datagrams of 1470 bytes ",
    ]);
  });
});
