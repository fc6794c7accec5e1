/** What a keyboard and a screen reader find in every view, light and dark: axe-core's rules, and a way by keys alone. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AxeResults, ElementContext, RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { SCENES } from "../../screenshots/scenes";
import { addRunning, attemptsFile } from "../attempts";
import { launch, VIEWER, type Viewer, withViewer } from "./launch";
import { choose, goTo, opened, settled } from "./steps";

const DEMO = join(VIEWER, "dist", "demo.sqlite");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let viewer: Viewer;
beforeAll(async () => {
  viewer = await launch({ files: [DEMO] });
  await viewer.page.setViewportSize({ width: 1280, height: 800 });
  await opened(viewer.page);
});
afterAll(() => viewer.close());

type Run = (context: ElementContext, options: RunOptions) => Promise<AxeResults>;

/** What somebody could not use, in words. */
async function hindrances(page: Page, rules: string[] = []): Promise<string[]> {
  // Into the page from outside: its own policy lets no script in.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const results = await page.evaluate(
    // The inside of a plot is a picture, told by its label.
    (only) => (window as unknown as { axe: { run: Run } }).axe.run({ exclude: [".plot svg"] }, only),
    rules.length ? { runOnly: rules } : {},
  );
  expect(results.passes.map(({ id }) => id)).toContain("color-contrast");
  return results.violations.map(
    ({ id, impact, help, nodes }) =>
      `${id} (${impact}), ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
  );
}

/** All of it in the light; in the dark what is of another colour. */
async function expectNoHindrances(page: Page): Promise<void> {
  await page.getByLabel("Theme").selectOption("light");
  await settled(page);
  expect(await hindrances(page), "light").toEqual([]);
  await page.getByLabel("Theme").selectOption("dark");
  await settled(page);
  expect(await hindrances(page, ["color-contrast"]), "dark").toEqual([]);
}

test.each(SCENES)("$name: nothing keeps anybody out", async ({ reach }) => {
  await reach(viewer.page);
  await expectNoHindrances(viewer.page);
  for (const plot of await viewer.page.locator("main .plot").all()) {
    expect(await plot.getAttribute("role")).toBe("img");
    expect((await plot.getAttribute("aria-label"))?.length).toBeGreaterThan(40);
  }
});

test("plots as tables: nothing keeps anybody out", async () => {
  await goTo(viewer.page, "Offered load");
  await choose(viewer.page, "Run", "skybet-2017");
  const tables = viewer.page.getByRole("main").getByRole("button", { name: "Table", exact: true });
  while (await tables.count()) await tables.first().click();
  await expectNoHindrances(viewer.page);
  expect(await viewer.page.locator("main table th").count()).toBeGreaterThan(10);
  expect(await viewer.page.locator("main table th:not([scope])").count()).toBe(0);
});

test("a drill at hand, and one replayed: nothing keeps anybody out", async () => {
  const folder = mkdtempSync(join(tmpdir(), "overlaylab-accessible-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "training.sqlite");
  const db = attemptsFile(path);
  addRunning(db, "20260108T090000Z-0004", 60);
  db.close();
  await withViewer({ files: [path], args: [`--home=${folder}`], settings: { view: "training" } }, async ({ page }) => {
    await opened(page);
    await page.locator('[aria-label="Attempts"] tr', { hasText: "Kim" }).getByRole("button").click();
    await settled(page);
    await expectNoHindrances(page);
    expect(await page.locator("main .plot").count()).toBe(10);
  });
});

test("help, and a window with nothing open: nothing keeps anybody out", async () => {
  await withViewer({}, async ({ page }) => {
    await page.getByRole("heading", { name: "Nothing is open" }).waitFor();
    await expectNoHindrances(page);
    await page.getByRole("button", { name: "Keys and how to read the plots" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await hindrances(page)).toEqual([]);
  });
});

/** Keys until the control that has the focus is the one of that name; where nobody gets, the test fails. */
async function tabTo(page: Page, name: string): Promise<void> {
  const seen: string[] = [];
  for (let pressed = 0; pressed < 60; pressed++) {
    await page.keyboard.press("Tab");
    const [text, outlined] = await page.evaluate((): [string, boolean] => {
      const focused = document.activeElement;
      return [
        focused?.getAttribute("aria-label") ?? focused?.textContent ?? "",
        focused !== null && getComputedStyle(focused).outlineStyle !== "none",
      ];
    });
    seen.push(text.slice(0, 30));
    if (text) expect(outlined, `the focus is seen on ${text}`).toBe(true);
    if (text === name) return;
  }
  throw new Error(`Tab never came to ${name}: ${seen.join(", ")}`);
}

test("keys alone lead from a plot of Compare to the evidence behind a point", async () => {
  await withViewer({ files: [DEMO] }, async ({ page }) => {
    await opened(page);
    await tabTo(page, "Compare");
    await page.keyboard.press("Enter");
    await settled(page);
    await tabTo(page, "Table");
    await page.keyboard.press("Space");
    await settled(page);
    await tabTo(page, "Evidence");
    const overlay = await page.evaluate(() => document.activeElement?.closest("tr")?.cells[1]?.textContent);
    await page.keyboard.press("Enter");
    await settled(page);
    expect(await page.locator('nav [aria-current="page"]').textContent()).toBe("Evidence");
    expect(await page.getByRole("region", { name: "The chosen trial" }).locator("h2").textContent()).toContain(overlay);
    expect(await page.getByRole("button", { name: "Copy" }).first().isVisible()).toBe(true);
  });
});
