/** Offered load and latency of the demo's real runs, in the window: choices, a dot's evidence, what is kept. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, VIEWER, withViewer } from "./launch";
import { goTo, settled } from "./steps";

const DEMO = join(VIEWER, "dist", "demo.sqlite");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-load-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const drawn = (page: Page, plots: number) =>
  page.waitForFunction((count) => document.querySelectorAll("main .plot[data-drawn]").length === count, plots);

/** The select whose label begins so. */
const choice = (page: Page, label: string) =>
  page.locator("main label", { hasText: new RegExp(`^${label}`) }).locator("select");

async function run(page: Page, suite: string): Promise<void> {
  const option = await choice(page, "Run")
    .locator("option", { hasText: `· ${suite} ·` })
    .first()
    .getAttribute("value");
  await choice(page, "Run").selectOption(option);
}

test("offered load: a pair of zones is chosen, a dot leads to its trial, and the choice is there after a restart", async () => {
  const userData = mkdtempSync(join(folder, "settings-"));
  const first = await launch({ files: [DEMO], userData });
  const { page } = first;
  await page.getByRole("navigation").getByRole("button", { name: "Offered load" }).click();
  await run(page, "skybet-2017");
  await drawn(page, 4);
  await choice(page, "Datagrams").selectOption({ label: "8192 bytes" });
  await choice(page, "Between").selectOption({ label: "remote: node1 → node2, a → b" });
  await page.getByText("8192 bytes; iperf3").waitFor();
  await drawn(page, 4);
  // Of ten trials one is void: it is named, and no dot.
  expect(await page.locator("main .unusable li").count()).toBe(1);
  await page.waitForFunction(() => document.querySelector("main .plot")?.querySelectorAll(".point").length === 9);
  const dot = await page.locator("main .plot").first().locator(".point").first().boundingBox();
  if (!dot) throw new Error("the dot is not on the page");
  // Plotly finds the dot under the pointer itself; its label says when it has.
  await page.mouse.move(dot.x + dot.width / 2, dot.y + dot.height / 2);
  await page.locator(".hoverlayer text", { hasText: "click: its evidence" }).waitFor();
  await page.mouse.down();
  await page.mouse.up();
  await page.getByRole("heading", { name: "udp-1-8k" }).waitFor();
  await first.close();

  const second = await launch({ files: [DEMO], userData });
  await second.page.getByRole("navigation").getByRole("button", { name: "Offered load" }).click();
  await run(second.page, "skybet-2017");
  await second.page.getByText("8192 bytes; iperf3").waitFor();
  await second.close();
});

test("evidence: the trial that is shown is one of those listed, or it is said that it is none", async () => {
  await withViewer({ files: [DEMO], settings: { view: "evidence" } }, async ({ page }) => {
    await run(page, "skybet-2017");
    const shown = page.locator('main [aria-label="The chosen trial"] .facts');
    const list = page.getByRole("region", { name: "Trials" });
    await choice(page, "Status").selectOption("ok");
    await shown.getByText("ok, exit code 0").waitFor();
    await choice(page, "Status").selectOption("void");
    await shown.getByText("void, exit code").waitFor();
    expect(await list.locator('button[aria-pressed="true"]').innerText()).toMatch(/^void/);
    // One that a plot leads to is shown, though the list is of void ones.
    await goTo(page, "Offered load");
    await page.locator(".chart").first().getByRole("button", { name: "Table", exact: true }).click();
    await page.locator(".grid-table").getByRole("button", { name: "Evidence", exact: true }).first().click();
    await shown.getByText("ok, exit code 0").waitFor();
    await list.getByText("The trial that is shown is not in this list.").waitFor();
    await list.getByRole("button", { name: "List all" }).click();
    await list.locator('button[aria-pressed="true"]').waitFor();
    expect(await list.getByText("is not in this list").count()).toBe(0);
  });
});

test("evidence: a run that is chosen the moment a trial appears stays chosen", async () => {
  await withViewer({ files: [DEMO], settings: { view: "evidence" } }, async ({ page }) => {
    await page.locator("main .facts").first().waitFor();
    // Between the trial's drawing and what follows from it: nobody is as fast, but a busy machine is as slow.
    await page.evaluate(
      (words) =>
        new Promise<void>((done) => {
          const main = document.querySelector("main") as HTMLElement;
          const select = main.querySelector(".run-picker select") as HTMLSelectElement;
          const wanted = [...select.options].find(({ text }) => text.includes(words)) as HTMLOptionElement;
          const seen = new MutationObserver(() => {
            if (!main.querySelector(".facts")) return;
            seen.disconnect();
            select.value = wanted.value;
            select.dispatchEvent(new Event("change", { bubbles: true }));
            done();
          });
          seen.observe(main, { childList: true, subtree: true });
          main.querySelectorAll<HTMLButtonElement>('[aria-label="Trials"] li button')[1]?.click();
        }),
      "skybet-2017",
    );
    await settled(page);
    expect(await page.locator(".run-picker select option:checked").innerText()).toContain("skybet-2017");
    await choice(page, "Status").waitFor();
  });
});

test("a run without UDP says what measures it, and which runs of the file did", async () => {
  await withViewer({ files: [DEMO], settings: { view: "load" } }, async ({ page }) => {
    await run(page, "deitcher-2016");
    await page.getByText("SUITE=skybet-2017").waitFor();
    await page.locator("main").getByRole("button", { name: "· full ·" }).click();
    await drawn(page, 4);
  });
});

test("latency: netperf's percentiles by size, sockperf's distribution, qperf's single values", async () => {
  await withViewer({ files: [DEMO], settings: { view: "latency" } }, async ({ page }) => {
    await run(page, "deitcher-2016");
    await drawn(page, 2);
    expect(await page.locator("main figure h3").allTextContents()).toEqual([
      "RTT percentiles (ms), netperf TCP_RR, 300 bytes, 1 block",
      "Median (filled) and 99 % (hollow) of RTT (ms) by request size, netperf TCP_RR, 1 block",
    ]);
    await run(page, "full");
    await choice(page, "Measured by").selectOption({ label: "sockperf UDP 500 messages/s (open loop)" });
    await page.getByRole("heading", { name: "share of requests that took no longer" }).waitFor();
    await choice(page, "Measured by").selectOption({ label: "qperf TCP_LAT (closed loop)" });
    await page.getByRole("heading", { name: "One-way latency" }).waitFor();
    await drawn(page, 1);
  });
});
