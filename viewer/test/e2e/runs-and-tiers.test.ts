/** Tiers, publications and runs side by side, with the recorded results that come with the viewer. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { VIEWER, withViewer } from "./launch";
import { choose, goTo, settled } from "./steps";

const DEMO = join(VIEWER, "dist", "demo.sqlite");
/** Weave's fastdp on aws-t2.medium, at an overlay MTU of 1410 and of 8950; sleeve on azure-a1, twice. */
const [SMALL, LARGE, FIRST, AGAIN] = [
  "20261121T142719Z-f6fd",
  "20261121T143225Z-e551",
  "20261121T135925Z-1f0a",
  "20261121T224109Z-43a8",
] as const;

let folder: string;
let other: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-runs-"));
  other = join(folder, "other.sqlite");
  copyFileSync(DEMO, other);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const held = (...runs: [string, string][]): object => ({
  view: "runs",
  filters: { runs: { runs: runs.map(([path, run]) => ({ path, run })), table: null } },
});

const choice = (page: Page, label: string) =>
  page.locator("label", { hasText: new RegExp(`^${label} `) }).locator("select");

/** The table of differences, row by row, once it has as many: a file opens after the other. */
const rows = async (page: Page, count: number): Promise<string[][]> => {
  const table = page.getByRole("region", { name: "Differences" }).locator("tbody tr");
  await table.nth(count - 1).waitFor();
  return Promise.all((await table.all()).map((row) => row.locator("td").allInnerTexts()));
};

test("two runs are held against each other with the interval that results:compare prints", async () => {
  await withViewer({ files: [DEMO], settings: held([DEMO, SMALL], [DEMO, LARGE]) }, async ({ page }) => {
    expect(await rows(page, 1)).toEqual([["weave fastdp", "6, 6", ".178", ".518", "3.27", "2.56 to 5.11", "faster"]]);
    await page.getByText("Between them: another MTU of weave fastdp: 1410, then 8950.").waitFor();
  });
});

test("runs of two files, one of them on another profile: a warning, and no verdict", async () => {
  const settings = held([DEMO, FIRST], [other, AGAIN], [DEMO, LARGE]);
  await withViewer({ files: [DEMO, other], settings }, async ({ page }) => {
    const found = await rows(page, 2);
    expect(found.map((cells) => [cells[1], cells[2], cells.at(-1)])).toEqual([
      ["weave sleeve", "6, 7", "cannot tell"],
      ["weave sleeve", "6, 6", "none: not to be compared"],
    ]);
    const warning = page.locator(".against .banner");
    expect(await warning.count()).toBe(1);
    expect(await warning.innerText()).toContain("cannot be compared: another profile: azure-a1, then aws-t2.medium");
    // From a dot to its trial, in its own file.
    await page.locator(".chart").nth(1).locator(".plot[data-drawn]").waitFor();
    await page.locator(".chart").nth(1).getByRole("button", { name: "Table" }).click();
    await page.getByRole("button", { name: "Evidence", exact: true }).nth(8).click();
    await page.locator('main[aria-label="Evidence"]').waitFor();
    expect(await page.getByLabel("File", { exact: true }).locator("option:checked").innerText()).toBe("other.sqlite");
  });
});

test("the tables of tiers fit into a window of 1280, sentences in columns that can be read", async () => {
  await withViewer({ files: [DEMO], settings: { view: "tiers" } }, async ({ page }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await settled(page);
    for (const label of ["All checks", "Published against measured"]) {
      const table = page.getByRole("region", { name: label });
      expect(await table.evaluate((each) => each.scrollWidth - each.clientWidth), label).toBe(0);
      const widths = await table.locator("th.why").evaluateAll((all) => all.map((each) => each.clientWidth));
      expect(Math.min(...widths), label).toBeGreaterThan(140);
    }
  });
});

test("a plot's table names the view that each row leads to", async () => {
  await withViewer({ files: [DEMO], settings: { view: "tiers" } }, async ({ page }) => {
    for (const [nth, view] of ["Overview", "Compare"].entries()) {
      await goTo(page, "Tiers");
      await page.locator(".chart").nth(nth).getByRole("button", { name: "Table", exact: true }).click();
      await page.locator(".grid-table").getByRole("button", { name: view, exact: true }).first().click();
      await page.locator(`main[aria-label="${view}"]`).waitFor();
    }
  });
});

test("runs that share no overlay: said so, with no empty plot", async () => {
  const settings = held([DEMO, "20261122T010819Z-ec5c"], [DEMO, "20261121T224109Z-43a8"]);
  await withViewer({ files: [DEMO], settings }, async ({ page }) => {
    await page.getByText("These runs share no overlay.").waitFor();
    await settled(page);
    expect(await page.locator("main .plot, main table").count()).toBe(0);
    // Counts are no ratios: there the hosts themselves can be seen.
    await choose(page, "What", "retransmits");
    await page.getByText("These runs share no overlay.").waitFor();
    expect(await page.locator("main .plot").count()).toBe(1);
  });
});

test("what was chosen is there after a restart", async () => {
  const userData = mkdtempSync(join(folder, "user-"));
  await withViewer({ files: [DEMO], userData, settings: { view: "publications" } }, async ({ page }) => {
    await choice(page, "Publication").selectOption("schaaf-2015");
    await choice(page, "Metric").selectOption("TCP latency one way");
    await page.getByText("It prints the same latency for host and overlay").waitFor();
  });
  await withViewer({ files: [DEMO], userData }, async ({ page }) => {
    await page.getByRole("heading", { name: "schaaf-2015: TCP latency one way, ratio to its own host" }).waitFor();
    expect(await choice(page, "Publication").inputValue()).toBe("schaaf-2015");
  });
});

test("a tier's checks by profile, and the verdict on what was published", async () => {
  await withViewer({ files: [DEMO], settings: { view: "tiers" } }, async ({ page }) => {
    const published = page.getByRole("region", { name: "Published against measured" }).locator("tbody tr");
    await published.first().waitFor();
    const azureA0 = published.filter({ hasText: "azure-a0" });
    expect(await azureA0.innerText()).toMatch(
      /\.944[\s\S]*\.927[\s\S]*cannot tell[\s\S]*leaves open whether the overlay costs anything/,
    );
    await choice(page, "Profile").selectOption("azure-a3");
    const checks = page.getByRole("region", { name: "All checks" }).locator("tbody tr");
    await page.waitForFunction(
      () => !document.querySelector('[aria-label="All checks"] tbody')?.textContent?.includes("azure-a0"),
    );
    const words = await checks.allInnerTexts();
    expect(words.filter((each) => each.includes("not applicable here")).length).toBeGreaterThan(0);
    expect(words.every((each) => each.startsWith("azure-a3"))).toBe(true);
  });
});

test("the grid of tiers as absolute values, from which a click leads to the cell's own table", async () => {
  // A placement chosen for one run before must not send the click to another table.
  const settings = { view: "compare", filters: { compare: { part: "tiers", placement: "local" } } };
  await withViewer({ files: [DEMO], settings }, async ({ page }) => {
    const title = page.locator("main .chart h3");
    await title.filter({ hasText: "tcp-goodput (remote): goodput, ratio to the host" }).waitFor();
    await page.getByRole("button", { name: "Absolute", exact: true }).click();
    await title.filter({ hasText: "tcp-goodput (remote): goodput, median of blocks" }).waitFor();
    await page.getByRole("button", { name: "Table", exact: true }).click();
    const table = page.locator("main .grid-table").first();
    const heads = await table.locator("th").allInnerTexts();
    const row = table.locator("tbody tr", { hasText: "weave sleeve" }).filter({ hasText: FIRST });
    const cell = async (name: string) =>
      row
        .locator("td")
        .nth(heads.findIndex((head) => head.startsWith(name)))
        .innerText();
    expect(await cell("median")).toBe("13398600");
    expect(await cell("the host's median")).toBe("95482200");
    expect(await cell("published")).toBe("72880000 schaaf-2015");
    // Of a run that measured within a node too.
    await table
      .locator("tbody tr", { hasText: "weave fastdp" })
      .filter({ hasText: "full × 0.1" })
      .getByRole("button")
      .click();
    await title.filter({ hasText: /^tcp-goodput( \(remote.*\))?: goodput, Mbit\/s; Azure A1, 1 block/ }).waitFor();
    expect(await choice(page, "Placement").inputValue()).toBe("remote");
  });
});

test("an exported picture has its title above the legend, and the height of the plot on the page", async () => {
  const path = join(folder, "load.svg");
  await withViewer({ files: [DEMO], settings: { view: "load" } }, async ({ page, app }) => {
    await choice(page, "Run").selectOption({
      label: await choice(page, "Run").locator("option", { hasText: "skybet" }).first().innerText(),
    });
    await app.evaluate(({ dialog }, filePath) => {
      dialog.showSaveDialog = async () => ({ canceled: false, filePath });
    }, path);
    await page.locator(".plot[data-drawn]").nth(3).waitFor();
    await page.getByRole("button", { name: "SVG", exact: true }).nth(3).click();
    await expect.poll(() => existsSync(path), { timeout: 10_000 }).toBe(true);
    // Laid out by the browser itself, as only it knows how high texts are.
    const found = await page.evaluate(
      (svg) => {
        const place = document.createElement("div");
        place.innerHTML = svg;
        document.body.append(place);
        const box = (name: string) => place.querySelector(name)?.getBoundingClientRect();
        const told = { height: box("svg")?.height, title: box(".gtitle")?.bottom, legend: box(".legend")?.top };
        place.remove();
        return told;
      },
      readFileSync(path, "utf8"),
    );
    expect(found.height).toBe(330 + 50);
    expect(found.legend).toBeGreaterThan(found.title ?? Number.POSITIVE_INFINITY);
  });
});
