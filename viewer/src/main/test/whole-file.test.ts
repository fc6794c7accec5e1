/** An exported file is the old one or the new one, at every moment. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeWhole } from "../whole-file";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "whole-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("whoever reads meanwhile sees the old file or the new one", async () => {
  const path = join(folder, "page.html");
  writeFileSync(path, "old");
  const seen = new Set<number>();
  let written = false;
  const writing = writeWhole(path, "x".repeat(20_000_000)).then(() => {
    written = true;
  });
  while (!written) {
    seen.add(statSync(path).size);
    await new Promise(setImmediate);
  }
  await writing;
  seen.add(statSync(path).size);
  expect([...seen]).toEqual([3, 20_000_000]);
  expect(readdirSync(folder)).toEqual(["page.html"]);
});

test("what cannot be put in place leaves nothing behind, and what was there", async () => {
  const path = join(folder, "plot.svg");
  mkdirSync(join(path, "kept"), { recursive: true });
  await expect(writeWhole(path, "<svg/>")).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
  expect(readdirSync(folder)).toEqual(["plot.svg"]);
  expect(readdirSync(path)).toEqual(["kept"]);
});

test("a file is written anew, as bytes too", async () => {
  const path = join(folder, "plot.png");
  await writeWhole(path, "first");
  await writeWhole(path, new Uint8Array([1, 2]));
  expect([...readFileSync(path)]).toEqual([1, 2]);
});
