/** Questions and views are found by where they lie. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pages, queries } from "../../generate.mts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-generate-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (path: string, text = ""): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const shared = () => join(folder, "shared");
const features = () => join(folder, "features");

test("a question is a file, of a view or of several, under the file's name", () => {
  write("shared/runs.sql", "SELECT 1");
  write("features/time/queries/time_points.sql", "SELECT 2");
  write("features/time/queries/README.md");
  write("features/time/view.tsx");
  expect(queries(shared(), features())).toEqual({ runs: "SELECT 1", time_points: "SELECT 2" });
});

test("two questions of one name are an error", () => {
  write("shared/runs.sql");
  write("features/time/queries/runs.sql");
  expect(() => queries(shared(), features())).toThrow(
    /features\/time\/queries\/runs\.sql: there is another runs\.sql$/,
  );
});

test("a view is a folder with a page", () => {
  write("features/time/view.tsx");
  write("features/load/view.tsx");
  write("features/notes/README.md");
  expect(pages(features())).toBe(`import { View as load } from "../renderer/features/load/view";
import { View as time } from "../renderer/features/time/view";

export const PAGES = { load, time };
`);
});
