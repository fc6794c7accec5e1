/** What stands on the command line: of the first window, and of another start, whose arguments the first one is told. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { make } from "../make";
import { VIEWER, withViewer } from "./launch";

test("another start hands its file, relative to its own folder, to the window that is open", async () => {
  const folder = mkdtempSync(join(tmpdir(), "overlaylab-arguments-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const first = make(join(folder, "first.sqlite"));
  const second = make(join(folder, "second.sqlite"));
  await withViewer({ files: [first], args: ["--log-level=3"] }, async ({ app, page, userData }) => {
    await page.waitForFunction(() => document.title.startsWith("first.sqlite"));
    const program = await app.evaluate(() => process.execPath);
    const another = spawn(program, [VIEWER, "--log-level=3", `--user-data-dir=${userData}`, basename(second)], {
      cwd: folder,
      stdio: "ignore",
    });
    expect(await new Promise((ended) => another.on("exit", ended))).toBe(0);
    await page.waitForFunction(() => document.title.startsWith("second.sqlite"));
    expect(await page.getByLabel("File", { exact: true }).locator("option").allTextContents()).toEqual([
      "first.sqlite",
      "second.sqlite",
    ]);
  });
});
