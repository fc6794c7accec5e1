/** The way from the page to main, attacked from within the page as a script would that got into it. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { make } from "../make";
import { attackedWindow, folder, inPage, viewer } from "./attacked-window";

attackedWindow();

describe("main answers what the contract says, and nothing else (security/parameters.ts, security/told.ts)", () => {
  test("the bridge has the contract's functions, and cannot be changed", async () => {
    const names = await viewer.page.evaluate(() =>
      Object.entries(window.overlaylab).filter(([, each]) => typeof each !== "function"),
    );
    expect(names).toEqual([]);
    expect(
      await viewer.page.evaluate(
        () => Reflect.set(window.overlaylab, "openFile", () => "forged") && String(window.overlaylab.openFile),
      ),
    ).not.toContain("forged");
    expect(await inPage(() => window.overlaylab.on("file:nonsense" as never, () => {}))).toMatch(/^refused/);
  });

  test.each([
    ["a path that nobody chose", () => window.overlaylab.openFile("/etc/passwd")],
    ["a path that is none", () => window.overlaylab.openFile({ length: 3 } as never)],
    ["a path with an end in it", () => window.overlaylab.openFile("/etc/passwd\0.sqlite")],
    ["a drop that is none", () => window.overlaylab.openDropped({ path: "/etc/passwd" } as never)],
    [
      "a drop that a script made",
      async () => (await window.overlaylab.openDropped(new File(["x"], "/etc/passwd"))).answer,
    ],
    ["a question that there is not", () => window.overlaylab.query("f1", "constructor" as never, {} as never)],
    ["SQL for a question", () => window.overlaylab.query("f1", "SELECT 1; DROP TABLE _run" as never, {} as never)],
    ["a list for a parameter", () => window.overlaylab.query("f1", "runs", { run: ["a"] } as never)],
    ["an odd name of a parameter", () => window.overlaylab.query("f1", "runs", { "a b": 1 } as never)],
    ["a parameter too long", () => window.overlaylab.query("f1", "runs", { run: "x".repeat(1e6) } as never)],
    ["a file id that is none", () => window.overlaylab.query("__proto__", "runs", {} as never)],
    ["a file that is not open", () => window.overlaylab.query("f99", "runs", {} as never)],
    ["the window's place", () => window.overlaylab.writeSettings({ window: { width: 1, height: 1, maximised: true } })],
    ["settings without end", () => window.overlaylab.writeSettings({ filters: { x: "y".repeat(1e6) } })],
    ["no settings", () => window.overlaylab.writeSettings("theme" as never)],
    ["a number to copy", () => window.overlaylab.copyText(5 as never)],
    [
      "an export of another kind",
      () => window.overlaylab.saveExport({ kind: "sh", suggestedName: "x.sh", content: "" } as never),
    ],
    [
      "an export into another folder",
      () => window.overlaylab.saveExport({ kind: "csv", suggestedName: "../../.bashrc", content: "" }),
    ],
  ])("%s is refused", async (_name, attempt) => {
    const answer = (await inPage(attempt)) as { ok: boolean; problem: { code: string } } | string;
    if (typeof answer === "string") expect(answer).toMatch(/^refused/);
    else expect(answer).toMatchObject({ ok: false, problem: { code: expect.stringMatching(/^(refused|gone)$/) } });
  });

  test("what main told of may be asked for", async () => {
    const path = join(folder, "lab.sqlite");
    expect(
      await viewer.page.evaluate(async (asked) => {
        await window.overlaylab.recentFiles();
        return window.overlaylab.openFile(asked);
      }, path),
    ).toMatchObject({ ok: true, value: { path } });
  });

  test("a file that a person gave is opened, whatever a script says its path is", async () => {
    const path = make(join(folder, "given.sqlite"));
    await viewer.page.evaluate(() =>
      document.body.append(Object.assign(document.createElement("input"), { type: "file", id: "given" })),
    );
    await viewer.page.setInputFiles("#given", path);
    const answer = await viewer.page.evaluate(() => {
      const input = document.querySelector<HTMLInputElement>("#given");
      const file = input?.files?.[0] as File;
      Object.defineProperty(file, "path", { value: "/etc/passwd" });
      return window.overlaylab.openDropped(file);
    });
    expect(answer).toMatchObject({ path, answer: { ok: true, value: { path } } });
    await viewer.page.evaluate(() => document.querySelector("#given")?.remove());
  });

  test("main has no channel besides the contract's, and hears nobody else", async () => {
    // Electron keeps what ipcMain.handle was given in a map of its own; a channel without a handler rejects.
    const listeners = await viewer.app.evaluate(({ ipcMain }) =>
      ipcMain
        .eventNames()
        .map(String)
        .filter((name) => name !== "error"),
    );
    expect(listeners).toEqual([]);
  });
});
