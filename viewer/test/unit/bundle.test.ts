/** Plotly draws a kind of trace that its bundle lacks as another one, and says nothing. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const BUNDLE = join(__dirname, "../../node_modules/plotly.js-cartesian-dist-min/plotly-cartesian.min.js");
const FEATURES = join(__dirname, "../../src/renderer/features");

test("the bundle has every kind of trace that is drawn", () => {
  const drawn = new Set<string>();
  for (const path of globSync("*/test/golden/*.json", { cwd: FEATURES })) {
    const { data } = JSON.parse(readFileSync(join(FEATURES, path), "utf8")) as { data?: { type?: string }[] };
    for (const { type } of data ?? []) drawn.add(type ?? "scatter");
  }
  const bundle = readFileSync(BUNDLE, "utf8");
  expect([...drawn].sort()).toEqual(["heatmap", "scatter"]);
  expect([...drawn].filter((type) => !bundle.includes(`moduleType:"trace",name:"${type}"`))).toEqual([]);
});
