/** What people expect of any program: keys, settings that stay, exports, recent files, a start with nothing open. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { VIEWS } from "../../src/contract/views";
import { make, RUN_ID } from "../make";
import { launch, VIEWER, type Viewer, withViewer } from "./launch";
import { choose, goTo, opened } from "./steps";

const DEMO = join(VIEWER, "dist", "demo.sqlite");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-habits-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The next save dialog answers with this path, as if somebody had chosen it. */
const savesTo = ({ app }: Viewer, path: string) =>
  app.evaluate(({ dialog }, filePath) => {
    dialog.showSaveDialog = async () => ({ canceled: false, filePath });
  }, path);

const settled = async ({ page }: Viewer) => {
  await page.waitForFunction(() => {
    const main = document.querySelector("main");
    return main && !main.querySelector(".waiting, .plot:not([data-drawn])") && (main.textContent ?? "").length > 40;
  });
};

test("with nothing open it says what to do, and shows the demo", async () => {
  await withViewer({}, async ({ page }) => {
    await page.getByRole("heading", { name: "Nothing is open" }).waitFor();
    await page.getByRole("button", { name: "Show the demo" }).click();
    await page.getByRole("heading", { name: /runs$/ }).waitFor();
    expect(await page.locator("header .file").textContent()).toContain("demo");
  });
});

test("every view of real results settles without a word of trouble", async () => {
  await withViewer({ files: [DEMO] }, async (viewer) => {
    for (const { title } of VIEWS) {
      await viewer.page.getByRole("navigation").getByRole("button", { name: title, exact: true }).click();
      await settled(viewer);
      expect(await viewer.page.locator("main .problem").count(), title).toBe(0);
    }
  });
});

test("settings and the view survive a restart", async () => {
  const userData = mkdtempSync(join(folder, "settings-"));
  const first = await launch({ files: [DEMO], userData });
  await first.page.getByLabel("Rates in").selectOption("MiB/s");
  await first.page.getByLabel("Theme").selectOption("dark");
  const source = () => first.app.evaluate(({ nativeTheme }) => nativeTheme.themeSource);
  await expect.poll(source).toBe("dark");
  await first.page.getByLabel("Theme").selectOption("system");
  await expect.poll(source).toBe("system");
  await first.page.getByLabel("Theme").selectOption("dark");
  await first.page.getByRole("navigation").getByRole("button", { name: "Compare" }).click();
  await settled(first);
  await first.close();
  const second = await launch({ files: [DEMO], userData });
  await settled(second);
  expect(await second.page.getByLabel("Rates in").inputValue()).toBe("MiB/s");
  expect(await second.page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
  expect(await second.page.locator('nav [aria-current="page"]').textContent()).toBe("Compare");
  await second.close();
});

test("the chosen run survives a restart, each file's own; where it is gone, the newest is shown", async () => {
  const userData = mkdtempSync(join(folder, "runs-"));
  const other = make(join(folder, "other.sqlite"));
  const shown = ({ page }: Viewer) => page.getByRole("combobox", { name: "Run", exact: true }).inputValue();
  await withViewer({ files: [other, DEMO], userData, settings: { view: "compare" } }, async (viewer) => {
    await choose(viewer.page, "Run", "2026-11-21 22:41");
  });
  const kept = JSON.parse(readFileSync(join(userData, "settings.json"), "utf8")) as {
    filters: { "chosen-runs": { path: string; run: string }[] };
  };
  expect(kept.filters["chosen-runs"]).toEqual([{ path: DEMO, run: "20261121T224109Z-43a8" }]);
  await withViewer({ files: [other, DEMO], userData }, async (viewer) => {
    await opened(viewer.page);
    await expect.poll(() => shown(viewer)).toBe("20261121T224109Z-43a8");
    await viewer.page.getByLabel("File", { exact: true }).selectOption("other.sqlite");
    await expect.poll(() => shown(viewer)).toBe(RUN_ID);
  });
  kept.filters["chosen-runs"] = [{ path: DEMO, run: "gone" }];
  await withViewer({ files: [DEMO], userData, settings: kept }, async (viewer) => {
    await opened(viewer.page);
    expect(await shown(viewer)).toBe("20261122T075502Z-2c2f");
  });
});

test("a plot is saved as SVG, PNG and CSV, with its title, and all views as one page that runs nothing", async () => {
  const viewer = await launch({ files: [DEMO], settings: { view: "compare", theme: "light" } });
  await settled(viewer);
  const chart = viewer.page.locator(".chart").first();
  const title = (await chart.locator("h3").textContent()) ?? "";
  for (const kind of ["SVG", "PNG", "CSV"]) {
    const path = join(folder, `plot.${kind.toLowerCase()}`);
    await savesTo(viewer, path);
    await chart.getByRole("button", { name: kind, exact: true }).click();
    await expect.poll(() => existsSync(path), { timeout: 20_000 }).toBe(true);
  }
  const svg = readFileSync(join(folder, "plot.svg"), "utf8");
  expect(svg).toMatch(/^<svg /);
  expect(svg).toContain(title.slice(0, 20));
  expect(readFileSync(join(folder, "plot.png")).subarray(1, 4).toString()).toBe("PNG");
  const csv = readFileSync(join(folder, "plot.csv"), "utf8").split("\r\n");
  expect(csv[0]).toMatch(/overlay/i);
  expect(csv.length).toBeGreaterThan(2);

  const all = join(folder, "all.html");
  await savesTo(viewer, all);
  await viewer.page.getByRole("button", { name: "Export all…" }).click();
  await expect.poll(() => existsSync(all), { timeout: 90_000 }).toBe(true);
  const html = readFileSync(all, "utf8");
  for (const { title } of VIEWS) expect(html).toContain(`<h1>${title}</h1>`);
  expect(html).toContain("default-src 'none'");
  expect(html).not.toMatch(/<script|<button|\son\w+=/i);
  expect(html).toContain("data:image/svg+xml");
  // Nobody is left in another view than before.
  await expect.poll(() => viewer.page.locator('nav [aria-current="page"]').textContent()).toBe("Compare");
  await viewer.close();
}, 150_000);

test("every table can be copied, texts whole that the page cuts", async () => {
  await withViewer({ files: [DEMO] }, async (viewer) => {
    const { page, app } = viewer;
    const copied = async (nth = 0): Promise<string[][]> => {
      await app.evaluate(({ clipboard }) => clipboard.clear());
      await page.getByRole("main").getByRole("button", { name: "Copy table" }).nth(nth).click();
      const text = () => app.evaluate(({ clipboard }) => clipboard.readText());
      await expect.poll(text).not.toBe("");
      return (await text()).split("\n").map((line) => line.split("\t"));
    };
    await opened(page);
    const runs = await copied();
    expect(runs[0]?.slice(0, 4)).toEqual(["Started", "State", "Trials", "Took"]);
    expect(runs).toHaveLength(1 + (await page.locator('[aria-label="Runs"] tbody tr').count()));
    await goTo(page, "Tiers");
    for (const [nth, label] of ["All checks", "Published against measured"].entries()) {
      const table = page.getByRole("region", { name: label });
      const cut = await table.getByRole("button", { name: /^all \d+ characters$/ }).count();
      const rows = await copied(nth);
      expect(rows).toHaveLength(1 + (await table.locator("tbody tr").count()));
      expect(rows.every((row) => row.length === rows[0]?.length)).toBe(true);
      expect(rows.flat().filter((cell) => cell === "–" || /…|characters$/.test(cell))).toEqual([]);
      expect(cut > 0 || nth === 0, "the page cuts some of these texts").toBe(true);
    }
    for (const [view, heading] of [
      ["Publications", "Tier"],
      ["Evidence", "Trial"],
    ] as const) {
      await goTo(page, view);
      expect((await copied())[0]?.[0]).toBe(heading);
    }
    expect((await copied(1))[0]).toEqual(["Metric", "Of", "Value", "Smallest", "Largest", "The tool's step"]);
    await goTo(page, "Runs side by side");
    await choose(page, "First", "quick · aws-t2.medium", 1);
    await choose(page, "Second", "quick · aws-t2.medium", 0);
    expect((await copied())[1]?.slice(0, 2)).toEqual(["weave fastdp", "6, 6"]);
  });
});

test("the page of all views keeps what qualifies it: banners, choices, lists, and texts whole", async () => {
  const path = join(folder, "a stranger's.sqlite");
  copyFileSync(DEMO, path);
  const long = "what was seen on the wire ".repeat(20);
  const db = new DatabaseSync(path);
  db.prepare("UPDATE _evidence SET reason = ?").run(long);
  db.close();
  await withViewer({ files: [path], args: [`--home=${join(folder, "lab")}`] }, async (viewer) => {
    const { page } = viewer;
    await opened(page);
    await goTo(page, "Evidence");
    await choose(page, "Run", "2026-11-22 07:55");
    const cut = await page.getByRole("button", { name: /^all \d+ characters$/ }).count();
    expect(cut).toBeGreaterThan(0);
    const all = join(folder, "qualified.html");
    await savesTo(viewer, all);
    await page.getByRole("button", { name: "Export all…" }).click();
    await expect.poll(() => existsSync(all), { timeout: 90_000 }).toBe(true);
    const exported = readFileSync(all, "utf8");
    const words = await page.evaluate((html) => {
      const found = new DOMParser().parseFromString(html, "text/html");
      const text = (which: string) => [...found.querySelectorAll(which)].map((each) => each.textContent ?? "");
      return { all: text("body").join(), banner: text(".banner"), trials: text(".trial-list li"), heads: text("th") };
    }, exported);
    expect(words.banner.join()).toContain("This file comes from elsewhere.");
    expect(words.trials.join()).toContain("flannel vxlan, block 1");
    expect(words.all).toContain(long.trim());
    expect(words.all).not.toMatch(/all \d+ characters/);
    expect(words.all).toContain("Scale: Ratio to the host");
    expect(words.all).toContain("What to compare: One run");
    expect(words.all).toMatch(/flannel( vxlan)?: yes/);
    expect(words.heads).toContain("Started");
    expect(exported).not.toMatch(/<script|<button|<input|\son\w+=/i);
  });
}, 150_000);

test("an export that cannot be written says so, and the words can be put away", async () => {
  await withViewer({ files: [DEMO], settings: { view: "compare" } }, async (viewer) => {
    await settled(viewer);
    const { page } = viewer;
    await savesTo(viewer, "/proc/nope/plot.svg");
    for (const kind of ["SVG", "PNG", "CSV"]) {
      await page.locator(".chart").first().getByRole("button", { name: kind, exact: true }).click();
      const told = page.getByRole("alert").filter({ hasText: "/proc/nope/plot.svg could not be written" });
      await told.waitFor();
      await told.getByRole("button", { name: "Dismiss" }).click();
      expect(await page.getByRole("alert").count()).toBe(0);
    }
    // What cannot be copied is said too; main is made to answer so.
    await viewer.app.evaluate(({ ipcMain }) => {
      ipcMain.removeHandler("text:copy");
      const problem = { code: "unexpected", title: "The clipboard is out of reach.", advice: "Try again." };
      ipcMain.handle("text:copy", () => ({ ok: false, problem }));
    });
    await page.getByRole("button", { name: "Copy table" }).first().click();
    await page.getByRole("alert").filter({ hasText: "The clipboard is out of reach." }).waitFor();
  });
});

test("help opens and closes by the keyboard; focus comes back", async () => {
  await withViewer({ files: [DEMO] }, async ({ page }) => {
    const help = page.getByRole("button", { name: "Keys and how to read the plots" });
    await help.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    expect(await dialog.textContent()).toContain("Cannot tell");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect(await help.evaluate((each) => document.activeElement === each)).toBe(true);
  });
});

test("the menu reaches every view and opens files", async () => {
  await withViewer({ files: [DEMO] }, async ({ app, page }) => {
    await page.getByRole("heading", { name: /runs$/ }).waitFor();
    const titles = await app.evaluate(({ Menu }) =>
      (Menu.getApplicationMenu()?.items ?? []).flatMap((top) => (top.submenu?.items ?? []).map((item) => item.label)),
    );
    expect(titles).toEqual(expect.arrayContaining(["Open…", ...VIEWS.map(({ title }) => title)]));
    await app.evaluate(({ Menu }) => {
      const view = Menu.getApplicationMenu()?.items.find((top) => top.label === "View");
      view?.submenu?.items.find((item) => item.label === "Publications")?.click();
    });
    await expect.poll(() => page.locator('nav [aria-current="page"]').textContent()).toBe("Publications");
  });
});

test("a closed file is among the recent ones", async () => {
  const userData = mkdtempSync(join(folder, "recent-"));
  await withViewer({ files: [DEMO], userData }, async ({ page }) => {
    await page.getByRole("heading", { name: /runs$/ }).waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    await page.getByRole("heading", { name: "Recent files" }).waitFor();
    await page.locator(".recent button").first().click();
    await page.getByRole("heading", { name: /runs$/ }).waitFor();
  });
});
