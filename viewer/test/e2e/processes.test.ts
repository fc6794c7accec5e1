/** Whom the viewer's processes run as, and what the kernel says of their sandbox: nobody passed a switch to weaken it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { make } from "../make";
import { withViewer } from "./launch";

/** proc(5). */
function facts(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(status)?.[1];
  return {
    uid: Number(field("Uid")),
    seccomp: Number(field("Seccomp")),
    noNewPrivileges: Number(field("NoNewPrivs")),
    capabilities: Number(`0x${field("CapEff")}`),
    sandboxOff: readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--no-sandbox"),
  };
}

test("the page is in the kernel's sandbox, and nothing runs as root", async () => {
  const folder = mkdtempSync(join(tmpdir(), "overlaylab-processes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await withViewer({ files: [make(join(folder, "processes.sqlite"))] }, async ({ app, page }) => {
    await page.waitForFunction(() => document.title.startsWith("processes.sqlite"));
    const metrics = await app.evaluate((electron) =>
      electron.app.getAppMetrics().map(({ pid, type, name }) => ({ pid, kind: name ?? type })),
    );
    const found = metrics.map(({ pid, kind }) => ({ kind, ...facts(pid) }));
    expect(found.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["Browser", "Tab", "overlaylab database"]));
    expect(found.filter(({ uid }) => uid === 0 || uid !== process.getuid?.())).toEqual([]);
    expect(found.filter(({ sandboxOff }) => sandboxOff)).toEqual([]);
    // 2: a filter of system calls.
    const shown = { seccomp: 2, noNewPrivileges: 1, capabilities: 0 };
    expect(found.filter(({ kind }) => kind === "Tab")).toEqual([expect.objectContaining(shown)]);
  });
});
