/** Which folder may import which: the rules of biome.json, broken one by one. */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const VIEWER = join(__dirname, "../..");
const PAGE = "src/renderer";

const REFUSED: [folder: string, module: string][] = [
  ["src", "./contract/text"],
  ["src/contract", "../main/files"],
  ["src/contract", "../renderer/lib/text"],
  ["src/contract", "node:fs"],
  ["src/main", "../renderer/lib/text"],
  ["src/main", "../database/open"],
  ["src/main/security", "../../preload/preload"],
  ["src/preload", "../main/files"],
  ["src/preload", "../renderer/lib/text"],
  ["src/preload", "node:fs"],
  ["src/database", "../renderer/features/time/queries/time_points.sql"],
  ["src/database", "electron"],
  [PAGE, "./features/time/view"],
  [`${PAGE}/lib`, "../ui/text"],
  [`${PAGE}/lib`, "../charts/figure"],
  [`${PAGE}/lib`, "../state/state"],
  [`${PAGE}/lib`, "preact"],
  [`${PAGE}/charts`, "../state/state"],
  [`${PAGE}/charts`, "../ui/text"],
  [`${PAGE}/state`, "../ui/text"],
  [`${PAGE}/state`, "../../main/files"],
  [`${PAGE}/ui`, "../app/help"],
  [`${PAGE}/ui`, "../features/time/figure"],
  [`${PAGE}/features/time`, "../load/figure"],
  [`${PAGE}/features/time`, "../../features/load/figure"],
  [`${PAGE}/features/time`, "../../app/help"],
  [`${PAGE}/features/time`, "./queries/time_points.sql"],
  [`${PAGE}/features/time`, "../../../main/files"],
  [`${PAGE}/features/time`, "../../../preload/preload"],
  [`${PAGE}/features/time`, "../../../database/queries"],
  [`${PAGE}/features/time`, "../../../generated/queries.json"],
  [`${PAGE}/features/time`, "node:fs"],
  [`${PAGE}/features/time`, "electron"],
  [`${PAGE}/app`, "../features/time/view"],
  [`${PAGE}/app`, "../../main/files"],
];

const ALLOWED: [folder: string, module: string][] = [
  ["src/contract", "./columns"],
  ["src/main", "./security/content"],
  ["src/main/security", "../../contract/policy.json"],
  ["src/preload", "electron"],
  ["src/database", "../generated/queries.json"],
  [PAGE, "./app/app"],
  [`${PAGE}/lib`, "../../contract/text"],
  [`${PAGE}/charts`, "../lib/text"],
  [`${PAGE}/state`, "@preact/signals"],
  [`${PAGE}/ui`, "../state/state"],
  [`${PAGE}/features/time`, "./figure"],
  [`${PAGE}/features/time`, "../../../contract/time"],
  [`${PAGE}/features/time/test`, "node:fs"],
  [`${PAGE}/app`, "../../generated/pages"],
];

let folder: string;
/** By file: the rules that it breaks. */
const broken = new Map<string, string[]>();

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const name = ([of, module]: [string, string]): string => `${of}/imports-${module.replace(/\W+/g, "-")}.ts`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-boundaries-"));
  copyFileSync(join(VIEWER, "biome.json"), join(folder, "biome.json"));
  for (const each of [...REFUSED, ...ALLOWED]) write(name(each), `import type {} from "${each[1]}";\n`);
  write(`${PAGE}/lib/one.ts`, 'import type { Two } from "./two";\n\nexport type One = Two | 1;\n');
  write(`${PAGE}/lib/two.ts`, 'import type { One } from "./one";\n\nexport type Two = One | 2;\n');
  const biome = join(VIEWER, "node_modules/@biomejs/biome/bin/biome");
  const told = spawnSync(process.execPath, [biome, "lint", "--reporter=json", "--max-diagnostics=none", "."], {
    cwd: folder,
    encoding: "utf8",
  });
  const { diagnostics } = JSON.parse(told.stdout) as {
    diagnostics: { category: string; location: { path: { file: string } } }[];
  };
  for (const { category, location } of diagnostics) {
    const { file } = location.path;
    broken.set(file, [...(broken.get(file) ?? []), category]);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(REFUSED)("%s may not import %s", (...each) => {
  expect(broken.get(name(each))).toEqual(["lint/style/noRestrictedImports"]);
});

test.each(ALLOWED)("%s may import %s", (...each) => {
  expect(broken.get(name(each))).toBeUndefined();
});

test("two files that import each other's types are a circle", () => {
  const circle = ["lint/nursery/noImportCycles"];
  expect(["one", "two"].map((file) => broken.get(`${PAGE}/lib/${file}.ts`))).toEqual([circle, circle]);
});
