/** Golden figures and figures' parts, from rows recorded of real runs. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { ComparisonRow, DotRow, GridCellRow, TableRow } from "../../../../contract/compare";
import { tabbed } from "../../../lib/csv";
import { isLog } from "../axis-choice";
import { copiedTable } from "../copied";
import { compareFigure } from "../figure";
import type { CompareInput } from "../input";
import { choiceOf, chosenTable } from "../keys";
import { ratioDots, variantKey } from "../ratios";
import { summaryTable } from "../table";
import { tiersOf } from "../tiers";
import { tiersAbsoluteFigure } from "../tiers-absolute";
import { tiersFigure } from "../tiers-ratio";

const recorded = <Found>(name: string): Found =>
  JSON.parse(readFileSync(new URL(`rows/${name}.json`, import.meta.url), "utf8")) as Found;
const table = (name: string): { table: TableRow; rows: ComparisonRow[]; dots: DotRow[] } => recorded(`compare-${name}`);
const golden = (figure: unknown, name: string) =>
  expect(`${JSON.stringify(figure, null, 1)}\n`).toMatchFileSnapshot(`golden/${name}.json`);
const INPUT: Pick<CompareInput, "axis" | "tier" | "units" | "asRatio"> = {
  axis: "auto",
  tier: "Azure A1",
  asRatio: true,
  units: { rateUnit: "auto", timeUnit: "auto" },
};
const MODE = (row: { mode: string | null }) => row.mode;

test.each([
  "readme-goodput",
  "readme-cpu",
  "fidelity-a0",
  "all-vm-goodput",
])("%s: the dots' median is the ratio of the statistics", (name) => {
  const { rows, dots } = table(name);
  const found = ratioDots(dots);
  for (const row of rows) {
    const values = (found.get(variantKey(row)) ?? []).map(({ value }) => value).sort((a, b) => a - b);
    expect(values).toHaveLength(row.ratio_blocks);
    const middle =
      values.length % 2
        ? values[values.length >> 1]
        : ((values[values.length / 2 - 1] ?? NaN) + (values[values.length / 2] ?? NaN)) / 2;
    expect(middle).toBeCloseTo(row.ratio ?? NaN, 12);
    expect(values[0]).toBeCloseTo(row.ratio_low ?? NaN, 12);
    expect(values[values.length - 1]).toBeCloseTo(row.ratio_high ?? NaN, 12);
  }
});

test("repetitions of a block become their median; a block without a host's value, or where that is zero, has no ratio", () => {
  const dot = (trial_id: number, overlay: string, block: number, value: number): DotRow => ({
    trial_id,
    overlay,
    mode: null,
    encrypted: 0,
    block,
    repetition: 1,
    value,
  });
  const found = ratioDots([
    dot(1, "host", 1, 8),
    dot(2, "host", 1, 10),
    dot(3, "host", 1, 100),
    dot(4, "host", 3, 0),
    dot(5, "weave", 1, 4),
    dot(6, "weave", 1, 6),
    dot(7, "weave", 2, 5),
    dot(8, "weave", 3, 5),
  ]);
  expect(found.get('["weave",null,0]')).toEqual([{ trial: 5, block: 1, value: 0.5, of: 2 }]);
  expect(found.get('["host",null,0]')).toEqual([{ trial: 2, block: 1, value: 1, of: 3 }]);
});

test("ratios to the host over seven blocks: intervals, verdicts, theory, what was published", async () => {
  const figure = compareFigure({ ...table("readme-goodput"), ...INPUT });
  expect(figure.title).toBe("tcp-goodput: goodput, ratio to the host; Azure A1, 7 blocks");
  expect(figure.layout.xaxis?.type).toBe("log");
  expect(figure.data.map(({ name }) => name)).toEqual([
    "interval of the median",
    "a block, over the host's",
    "median",
    "header theory",
    "published",
  ]);
  expect(figure.layout.annotations?.map(({ text }) => text)).toEqual([
    "what the others are divided by",
    "slower · .841 (.764–.936)",
    "slower · .138 (.0939–.205)",
  ]);
  await golden(figure, "compare-ratio");
});

test("in the metric's unit: every trial, the blocks' range, and no interval that nobody claimed", async () => {
  const figure = compareFigure({ ...table("readme-cpu"), ...INPUT, asRatio: false });
  expect(figure.title).toBe("tcp-latency: cpu per transaction, ms; Azure A1, 7 blocks");
  expect(figure.data.map(({ name }) => name)).toEqual(["smallest to largest block (no claim)", "a trial", "median"]);
  expect(figure.layout.xaxis?.type).toBe("log");
  await golden(figure, "compare-absolute");
});

test("many strips have their axis above as well", () => {
  const { layout, data } = compareFigure({ ...table("all-vm-goodput"), ...INPUT });
  expect(layout.xaxis2).toMatchObject({ side: "top", matches: "x", type: layout.xaxis?.type });
  expect(layout.xaxis2?.tickvals).toEqual(layout.xaxis?.tickvals);
  expect(data.at(-1)).toMatchObject({ xaxis: "x2", x: [null] });
  expect(compareFigure({ ...table("readme-goodput"), ...INPUT }).layout.xaxis2).toBeUndefined();
});

test("one block claims nothing; a run that has not ended says so", () => {
  const one = compareFigure({ ...table("all-vm-goodput"), ...INPUT });
  expect(one.data.map(({ name }) => name)).not.toContain("interval of the median");
  expect(one.layout.annotations?.[1]?.text).toBe("no verdict from 1 block · .994");
  expect(one.layout.annotations).toHaveLength(24);
  const interrupted = compareFigure({ ...table("deitcher-interrupted"), ...INPUT });
  expect(interrupted.title).toContain("provisional: the run has not ended");
  expect(interrupted.layout.annotations?.[1]?.text).toMatch(/^provisional: no verdict yet · /);
});

test("values of zero are not drawn on a logarithmic axis, and counted", () => {
  const figure = compareFigure({ ...table("readme-retransmits"), ...INPUT, asRatio: false, axis: "log" });
  const zeros = table("readme-retransmits").dots.filter(({ value }) => value === 0).length;
  expect(JSON.stringify(figure.layout.xaxis?.title)).toContain(`${zeros} of zero not drawn`);
});

test("a ratio within the tool's step says nothing, in words", () => {
  const { rows, ...rest } = table("fidelity-a0");
  const figure = compareFigure({
    ...rest,
    rows: rows.map((row) => (row.overlay === "host" ? row : { ...row, ratio_same_step: 1 })),
    ...INPUT,
  });
  expect(figure.layout.annotations?.[1]?.text).toBe("ratio says nothing: within the tool's step");
});

test("names of a file are drawn as text", () => {
  const { rows, dots, table: named } = table("readme-goodput");
  const hostile = '<a href="https://evil">x</a>';
  const figure = compareFigure({
    table: { ...named, benchmark: hostile },
    rows: rows.map((row) => (row.overlay === "host" ? row : { ...row, overlay: hostile })),
    dots,
    ...INPUT,
    tier: hostile,
  });
  // Plotly reads markup; the page shows the title as text.
  expect(JSON.stringify([figure.data, figure.layout])).not.toContain("<a ");
  expect(figure.title).toContain('<a href="https://evil">x</a>');
});

test("the table is the one that is printed", () => {
  const { table: which, rows } = table("readme-goodput");
  const { columns, rows: printed } = summaryTable(which, rows, INPUT.units);
  expect(columns.map(({ name, unit }) => (unit ? `${name} (${unit})` : name))).toEqual([
    "overlay, mode",
    "blocks",
    "median (Mbit/s)",
    "smallest–largest (Mbit/s)",
    "ratio to host",
    "coverage",
    "verdict",
    "headers",
    "published",
  ]);
  expect(printed).toEqual([
    ["host", 7, "95.7", "94.86–96.12", "1", null, "–", "1", "–"],
    ["weave fastdp", 7, "80.87", "72.51–89.75", ".841 (.764–.936)", "98.44 %", "slower", ".961", "–"],
    ["weave sleeve", 7, "13.22", "8.995–19.57", ".138 (.0939–.205)", "98.44 %", "slower", ".957", ".729 (schaaf-2015)"],
  ]);
});

test("the table as it is copied: numbers alone, each in its own column, and nothing for what is not known", () => {
  const { table: which, rows } = table("readme-goodput");
  const lines = tabbed(copiedTable(which, rows, INPUT.units))
    .split("\n")
    .map((line) => line.split("\t").map((cell) => (/^\d+\.\d+$/.test(cell) ? String(Number(cell).toFixed(3)) : cell)));
  expect(lines).toEqual([
    [
      ...["overlay, mode", "blocks", "median (Mbit/s)", "smallest (Mbit/s)", "largest (Mbit/s)"],
      ...["ratio to host", "smallest ratio", "largest ratio", "interval low", "interval high"],
      ...["coverage", "verdict", "headers", "published"],
    ],
    ["host", "7", "95.701", "94.862", "96.116", "1", "", "", "", "", "", "", "1", ""],
    [
      ...["weave fastdp", "7", "80.871", "72.509", "89.751", "0.841", "0.764", "0.936", "0.764", "0.936", "0.984"],
      ...["slower", "0.961", ""],
    ],
    [
      ...["weave sleeve", "7", "13.221", "8.995", "19.569", "0.138", "0.094", "0.204", "0.094", "0.205", "0.984"],
      ...["slower", "0.957", ".729 (schaaf-2015)"],
    ],
  ]);
});

test("a title counts the blocks that are drawn: as ratio those that the host has too", () => {
  const { table: which, rows, dots } = table("readme-goodput");
  const titles = (blocks: number[], asRatio: boolean) =>
    compareFigure({
      table: which,
      rows: rows.map((row, at) => ({ ...row, ratio_blocks: blocks[at] ?? 0 })),
      dots,
      ...INPUT,
      asRatio,
    }).title;
  expect(titles([7, 6, 6], true)).toBe("tcp-goodput: goodput, ratio to the host; Azure A1, 6 blocks");
  expect(titles([7, 6, 7], true)).toBe("tcp-goodput: goodput, ratio to the host; Azure A1, 6 to 7 blocks");
  expect(titles([7, 6, 6], false)).toBe("tcp-goodput: goodput, Mbit/s; Azure A1, 7 blocks");
});

test("where all values are zero, the axis begins there", () => {
  const { table: which, rows, dots } = table("readme-retransmits");
  const zero = <Row extends object>(row: Row, names: string[]): Row =>
    ({ ...row, ...Object.fromEntries(names.map((name) => [name, 0])) }) as Row;
  const range = (value: number) =>
    compareFigure({
      table: which,
      rows: rows.map((row) => ({ ...zero(row, ["median", "low", "high"]), theory: null, published: "[]" })),
      dots: dots.map((dot) => ({ ...dot, value })),
      ...INPUT,
      asRatio: false,
    }).layout.xaxis?.range;
  expect(range(0)).toEqual([-0.02, 1]);
  expect(range(3)).toBeUndefined();
});

test("a click on a cell of the grid shows its own table, whatever placement was chosen before", () => {
  const of = (benchmark: string, placement: string, metric: string): TableRow => ({
    ...table("readme-goodput").table,
    benchmark,
    placement,
    metric,
  });
  const tables = [of("tcp", "remote", "goodput"), of("tcp-local", "local", "goodput"), of("tcp", "remote", "cpu")];
  const before = { placement: "local", metric: "cpu", table: "" };
  expect(chosenTable(tables, before).table?.benchmark).toBe("tcp-local");
  for (const clicked of tables) expect(chosenTable(tables, { ...before, ...choiceOf(clicked) }).table).toBe(clicked);
});

test("tiers × overlays: a column for each tier, – where nothing was measured", async () => {
  const tiers = tiersOf(recorded<GridCellRow[]>("grid-fidelity"));
  expect(tiers.columns.map(({ title }) => title)).toEqual([
    ["AWS t2.medium"],
    ["Azure A0"],
    ["Azure A1"],
    ["Azure A2"],
    ["Azure A3"],
    ["Azure A8"],
    ["Azure D1"],
    ["Azure D2"],
  ]);
  expect(tiers.variants.map(({ name }) => name)).toEqual(["weave sleeve", "weave fastdp"]);
  expect(tiers.warnings).toEqual([]);
  const figure = tiersFigure(tiers, { benchmark: "tcp-goodput", metric: "goodput", placement: "remote" }, "higher");
  expect(figure.title).toBe("tcp-goodput (remote): goodput, ratio to the host by tier and overlay; 6 blocks each");
  await golden(figure, "compare-tiers");
});

describe("tiers × overlays as absolute values", () => {
  const rows = recorded<GridCellRow[]>("grid-fidelity");
  const goodput = {
    benchmark: "tcp-goodput",
    metric: "goodput",
    placement: "remote",
    unit: "bit/s",
    better: "higher",
  } as const;
  const drawn = (of: GridCellRow[], table: Parameters<typeof tiersAbsoluteFigure>[1] = goodput) => {
    const figure = tiersAbsoluteFigure(tiersOf(of, "absolute"), table, INPUT.units);
    const cells = figure.data[1] as unknown as {
      z: (number | null)[][];
      text: string[][];
      hovertext: string[][];
      zmin: number;
      zmax: number;
      colorbar: { title: { text: string }; ticktext?: string[] };
    };
    return { figure, cells };
  };

  test("the host is the first row, each cell the median with its unit", async () => {
    const { figure, cells } = drawn(rows);
    expect(figure.layout.yaxis?.ticktext).toEqual(["host", "weave sleeve", "weave fastdp"]);
    expect(figure.title).toBe("tcp-goodput (remote): goodput, median of blocks by tier and overlay; 6 blocks each");
    // Azure A8: 1375.8 Mbit/s and 17.3.
    expect(cells.text.map((row) => row[5])).toEqual(["1.376<br>Gbit/s", "17.31<br>Mbit/s", ""]);
    await golden(figure, "compare-tiers-absolute");
  });

  test("colours are logarithmic over more than a decade, with what they stand for beside them", () => {
    const { cells } = drawn(rows);
    expect(cells.z[0]?.[5]).toBeCloseTo(Math.log10(1.37582), 4);
    expect(cells.colorbar.title.text).toBe("goodput (Gbit/s); higher is better");
    expect(cells.colorbar.ticktext).toEqual(["0.01", "0.03", "0.1", "0.3", "1"]);
    const alike = drawn(rows.map((row) => ({ ...row, median: row.overlay === "host" ? 4e6 : 2e6 }))).cells;
    expect([alike.zmin, alike.zmax, alike.z[0]?.[0], alike.z[1]?.[0]]).toEqual([0, 4, 4, 2]);
    expect(alike.text[1]?.[0]).toBe("2<br>Mbit/s");
  });

  test("header theory and what was published are told in the unit, in the hover and in the table", () => {
    const { figure, cells } = drawn(rows.filter(({ instance }) => instance === "A1"));
    expect(cells.hovertext[1]?.[0]?.split("<br>")).toEqual([
      "weave sleeve, Azure A1",
      "median 13.4 Mbit/s",
      "blocks 7.353 Mbit/s to 17.72 Mbit/s; nothing is claimed",
      "6 blocks",
      "the host: 95.48 Mbit/s",
      "ratio .142: slower",
      "header theory × the host's median: 91.39 Mbit/s (ratio .957)",
      "published 72.88 Mbit/s, ratio .729 (schaaf-2015)",
      expect.stringMatching(/^run of .*; click: that run$/),
    ]);
    const row = Object.fromEntries(figure.grid.columns.map(({ name }, at) => [name, figure.grid.rows[1]?.[at]]));
    const sleeve = rows.find(({ instance, overlay }) => instance === "A1" && overlay === "weave");
    expect(row["header theory × the host's median"]).toBeCloseTo(
      (sleeve?.theory ?? NaN) * (sleeve?.host_median ?? NaN),
      3,
    );
    expect(row.median).toBe(sleeve?.median);
    expect(row.published).toBe("72880000 schaaf-2015");
    expect(figure.grid.points).toEqual([sleeve?.run_id, sleeve?.run_id]);
  });

  test("nothing measured is a dash, and zero is a value", () => {
    const { cells } = drawn(rows.map((row) => ({ ...row, median: row.overlay === "host" ? null : 0 })));
    expect(cells.z[0]).toEqual(Array(8).fill(null));
    expect(cells.z[1]?.[0]).toBe(0);
    expect([cells.zmin, cells.zmax]).toEqual([0, 1]);
  });
});

test("where columns are narrow, a verdict stands in lines of one word", () => {
  const rows = recorded<GridCellRow[]>("grid-fidelity");
  const texts = (cells: GridCellRow[]) => {
    const key = { benchmark: "tcp-goodput", metric: "goodput", placement: "remote" };
    return JSON.stringify(
      tiersFigure(tiersOf(cells), key, "higher").data.map((trace) => (trace as { text?: unknown }).text),
    );
  };
  expect(texts(rows)).toContain("<br>cannot tell");
  const many = texts([...rows, ...rows.map((row) => ({ ...row, accelerator: "kvm" as const }))]);
  expect(many).toContain("<br>cannot<br>tell");
  expect(many).not.toContain("cannot tell");
});

test("other accelerators, machines, suites and scales are columns of their own, and the grid warns", () => {
  const rows = recorded<GridCellRow[]>("grid-fidelity").filter(
    ({ instance, overlay }) => instance === "A1" && overlay !== "host",
  );
  const tiers = tiersOf([...rows, ...rows.map((row) => ({ ...row, accelerator: "kvm", machine: "another" }))]);
  expect(tiers.columns.map(({ title }) => title)).toEqual([
    ["Azure A1", "kvm", "another"],
    ["Azure A1", "tcg", "2 cores, AMD EPYC, …"],
  ]);
  expect(tiers.warnings).toEqual([
    "the nodes' CPUs ran differently (tcg; kvm)",
    "the machines differ (2 cores, AMD EPYC, 24 GB; another)",
  ]);
  expect(rows.map(MODE)).toEqual(["sleeve"]);
});

test("more is worse where less is better", () => {
  const rows = recorded<GridCellRow[]>("grid-fidelity")
    .filter(({ instance }) => instance === "A1")
    .map((row) => ({ ...row, ratio: 4 }));
  const key = { benchmark: "tcp-latency", metric: "latency_one_way", placement: "remote" };
  const z = (better: "higher" | "lower") => (tiersFigure(tiersOf(rows), key, better).data[1] as { z: number[][] }).z;
  expect(z("lower")).toEqual([[-2]]);
  expect(z("higher")).toEqual([[2]]);
});

test("an axis is logarithmic over more than a decade, never with zeros unless asked for", () => {
  expect(isLog("auto", [1, 10])).toBe(false);
  expect(isLog("auto", [1, 11])).toBe(true);
  expect(isLog("auto", [0, 1, 100])).toBe(false);
  expect(isLog("auto", [])).toBe(false);
  expect(isLog("log", [0, 1])).toBe(true);
  expect(isLog("log", [0])).toBe(false);
});

test("a block whose host was withdrawn is left out, and both are said", () => {
  const { table: which, rows, dots } = table("void-host");
  expect(summaryTable(which, rows, INPUT.units).rows).toEqual([
    ["host", 0, "–", "–", null, 1],
    ["weave fastdp", 1, "60.6", "no host value to compare with", 1, 0],
  ]);
  const figure = compareFigure({ table: which, rows, dots, ...INPUT, asRatio: false });
  expect(figure.layout.annotations?.map(({ text }) => text)).toEqual([
    "no value<br>1 void",
    "median 60.6 Mbit/s<br>1 block without a host value left out",
  ]);
});
