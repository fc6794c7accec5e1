import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DEFAULTS } from "../../contract/settings";
import { RecentFiles } from "../recent";
import { checked, SettingsFile } from "../settings";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-settings-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("settings survive a restart", () => {
  const path = join(folder, "deep", "settings.json");
  new SettingsFile(path).change({ theme: "dark", rateUnit: "MiB/s", filters: { compare: { metric: "goodput" } } });
  expect(new SettingsFile(path).value).toEqual({
    ...DEFAULTS,
    theme: "dark",
    rateUnit: "MiB/s",
    filters: { compare: { metric: "goodput" } },
  });
});

test("what has another type than it should is left out", () => {
  expect(
    checked({ theme: "pink", rateUnit: 3, window: { width: -5, height: "x", x: Number.NaN }, filters: null, view: {} }),
  ).toEqual(DEFAULTS);
  expect(checked(null)).toEqual(DEFAULTS);
  expect(checked({ window: { width: 1920, height: 1080, x: 5, y: 6, maximised: true } }).window).toEqual({
    width: 1920,
    height: 1080,
    x: 5,
    y: 6,
    maximised: true,
  });
});

test("a broken file is put aside, not lost", () => {
  const path = join(folder, "settings.json");
  writeFileSync(path, "{ half");
  expect(new SettingsFile(path).value).toEqual(DEFAULTS);
  expect(readFileSync(`${path}.broken`, "utf8")).toBe("{ half");
});

test("recent files: newest first, each once, ten at most", () => {
  const recent = new RecentFiles(join(folder, "recent.json"));
  for (let at = 0; at < 12; at++) recent.add(`/a/${at}.sqlite`);
  recent.add("/a/5.sqlite");
  expect(recent.list().map(({ path }) => path)).toEqual([
    "/a/5.sqlite",
    ...[11, 10, 9, 8, 7, 6, 4, 3, 2].map((at) => `/a/${at}.sqlite`),
  ]);
});
