/** A drill at hand in the window while its attempt is written, what is kept back until it ends, and one replayed. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addCycle, addEvent, addRunning, attemptsFile, cycle, DEBRIEF } from "../attempts";
import { make } from "../make";
import { withViewer } from "./launch";
import { choose, opened, settled } from "./steps";

const RUNNING = "20260108T090000Z-0004";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-training-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const board = (page: Page) => page.getByRole("region", { name: "The drill at hand" });
const replay = (page: Page) => page.getByRole("region", { name: "The chosen attempt" });
const row = (page: Page, words: string) => page.locator('[aria-label="Attempts"] tbody tr', { hasText: words });
const seconds = async (page: Page): Promise<number> => {
  const [minutes, rest] = ((await board(page).getByRole("timer").locator("strong").textContent()) ?? "").split(":");
  return Number(minutes) * 60 + Number(rest);
};

test("the drill at hand follows what is written, and tells its cause once it has ended", async () => {
  const path = join(folder, "live.sqlite");
  const db = attemptsFile(path);
  addRunning(db, RUNNING, 40);
  // As no attempt of ours does: told too early.
  addEvent(db, RUNNING, 1, "shown", DEBRIEF);
  await withViewer({ files: [path], settings: { view: "training" } }, async ({ page }) => {
    await opened(page);
    expect(await board(page).textContent()).toContain("Since noon names take seconds, or are not found.");
    const fetched = board(page).locator("table.dense tr", { hasText: "fetched" }).locator("td").nth(1);
    expect(await fetched.textContent()).toBe("0");
    const before = await seconds(page);
    expect(before).toBeGreaterThanOrEqual(40);
    await expect.poll(() => seconds(page)).toBeGreaterThan(before);

    for (let t = 41; t <= 46; t++)
      for (const role of ["client", "server"] as const) addCycle(db, RUNNING, cycle(t, role, "running", false));
    addEvent(db, RUNNING, 44, "hint", { text: "Ask the resolver directly.", cost: 5 });
    await expect.poll(() => fetched.textContent()).toBe("1");
    await board(page).getByText("Ask the resolver directly.").waitFor();
    await board(page).getByText("1 hint taken, 0 failed checks").waitFor();
    expect(await board(page).textContent()).not.toMatch(/fragmentation|path MTU/);
    await row(page, "Kim").getByRole("button").click();
    await replay(page).getByText("path MTU, ICMP").waitFor();

    db.exec("BEGIN");
    db.exec(`UPDATE _attempt SET state = 'repaired', ended_at = started_at, duration = 50, score = 95,
             cause = 'The resolver was gone.' WHERE attempt_id = '${RUNNING}'`);
    addEvent(db, RUNNING, 50, "repaired", DEBRIEF);
    db.exec("COMMIT");
    await board(page).waitFor({ state: "detached" });
    await row(page, "names-time-out").getByRole("button").click();
    await replay(page).getByText("The resolver was gone.").waitFor();
    expect(await replay(page).locator("em").textContent()).toBe("fragmentation needed");
  });
  db.close();
});

test("an earlier attempt at the drill at hand keeps its cause to itself", async () => {
  const path = join(folder, "again.sqlite");
  const db = attemptsFile(path);
  addRunning(db, RUNNING, 40, "downloads-hang");
  db.close();
  await withViewer({ files: [path], settings: { view: "training" } }, async ({ page }) => {
    await opened(page);
    await row(page, "Kim").getByRole("button").click();
    await replay(page).getByText("This drill is at hand in another attempt").waitFor();
    await settled(page);
    expect(await page.locator("main").textContent()).not.toMatch(
      /fragmentation|path MTU|1472|drops ICMP|Delete the rule/,
    );
  });
});

test("an attempt is replayed: what had not happened yet is not there, the debrief comes at the end", async () => {
  const path = join(folder, "ended.sqlite");
  attemptsFile(path).close();
  await withViewer({ files: [path], settings: { view: "training" } }, async ({ page }) => {
    await opened(page);
    expect(await row(page, "Robin").locator('button[aria-pressed="true"]').count()).toBe(1);
    await choose(page, "Trainee", "Kim");
    expect(await page.locator('[aria-label="Attempts"] tbody tr').count()).toBe(1);
    const said = replay(page).getByRole("region", { name: "What happened" }).locator("tbody tr");
    expect(await said.count()).toBe(8);
    expect(await replay(page).getByRole("region", { name: "Debrief" }).locator("code").allTextContents()).toEqual([
      "tracepath",
      "iptables -vL",
    ]);
    await replay(page).getByRole("slider").fill("100");
    await expect.poll(() => said.count()).toBe(5);
    await replay(page).getByText("until 1:40 of 5:00").waitFor();
    expect(await replay(page).getByText("path MTU").count()).toBe(0);
    await replay(page).getByRole("slider").fill("299");
    await replay(page).getByRole("button", { name: "Replay" }).click();
    await replay(page).getByRole("region", { name: "Debrief" }).waitFor();
    expect(await said.count()).toBe(8);
  });
});

test("a file of before drills says what makes an attempt", async () => {
  const path = make(join(folder, "older.sqlite"), undefined, 8);
  await withViewer({ files: [path], settings: { view: "training" } }, async ({ page }) => {
    await page.getByText("This file holds no attempt at a drill yet.").waitFor();
  });
});
