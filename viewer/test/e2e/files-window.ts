/** A window on this lab's results, and what a person does to give it a file. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { VIEWS } from "../../src/contract/views";
import { empty, fill, make, NEWEST, ORDINARY } from "../make";
import { launch, type Viewer } from "./launch";

/** This lab's results, as far as the window knows. */
export let folder: string;
/** Not this lab's. */
export let elsewhere: string;
/** One window for all tests that leave it as it was. */
export let viewer: Viewer;

/** One window for the tests of a file; each leaves it as it was. */
export function filesWindow(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "overlaylab-files-"));
    elsewhere = mkdtempSync(join(tmpdir(), "overlaylab-elsewhere-"));
    make(at("lab.sqlite"));
    viewer = await launch({ files: [at("lab.sqlite")], args: [`--home=${folder}`] });
    await viewer.page.waitForSelector("main table");
  });
  afterAll(async () => {
    await viewer.close();
    execFileSync("chmod", ["-R", "u+rwX", folder]);
    for (const each of [folder, elsewhere]) rmSync(each, { recursive: true, force: true });
  });
  afterEach(async () => {
    await dismissAll(viewer.page);
    expect(viewer.errors.splice(0)).toEqual([]);
  });
}

export const at = (name: string): string => join(folder, name);

export function edited(name: string, sql: string, version = NEWEST): string {
  const db = empty(at(name), version);
  fill(db, { ...ORDINARY, text: name });
  db.exec(sql);
  db.close();
  return at(name);
}

export function written(name: string, text: string): string {
  writeFileSync(at(name), text);
  return at(name);
}

/** What is said above the views stays until the person puts it away. */
export async function dismissAll(page: Page): Promise<void> {
  const buttons = page.locator(".failures .problem").getByRole("button", { name: "Dismiss" });
  while (await buttons.count()) await buttons.first().click();
}

/** As a person does it: the files are let fall on the window. */
export async function drop(page: Page, ...paths: string[]): Promise<void> {
  await page.evaluate(() =>
    document.body.append(
      Object.assign(document.createElement("input"), { type: "file", id: "dropped", multiple: true, hidden: true }),
    ),
  );
  await page.setInputFiles("#dropped", paths);
  await page.evaluate(() => {
    const input = document.querySelector<HTMLInputElement>("#dropped");
    const dataTransfer = new DataTransfer();
    for (const each of input?.files ?? []) dataTransfer.items.add(each);
    input?.remove();
    document
      .querySelector(".app")
      ?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
  });
}

/** As a second `./task view FILE` does: it is told to the window that is there. */
export const give = (path: string): Promise<unknown> =>
  viewer.app.evaluate(({ app }, given) => app.emit("second-instance", {}, ["electron", given], "/"), path);

/** Opened in the window that is there, looked at, and closed. */
export async function withGiven(path: string, look: (page: Page) => Promise<void>): Promise<void> {
  const { page } = viewer;
  await give(path);
  await expect.poll(() => shownFile(page)).toBe(basename(path));
  await look(page);
  await page.click('header button:text-is("Close")');
  await expect.poll(() => shownFile(page)).toBe("lab.sqlite");
}

export const shownFile = (page: Page): Promise<string | null> =>
  page.evaluate(
    () =>
      document.querySelector<HTMLSelectElement>('header select[aria-label="File"]')?.selectedOptions[0]?.textContent ??
      document.querySelector("header .file")?.textContent ??
      null,
  );

export async function seeAllViews(page: Page, look: (title: string) => Promise<void> = async () => {}): Promise<void> {
  for (const { title } of VIEWS) {
    await page.click(`nav button:text-is("${title}")`);
    await page.waitForFunction(
      (name) =>
        document.querySelector("main")?.getAttribute("aria-label") === name && !document.querySelector("main .waiting"),
      title,
    );
    expect(await page.textContent("main")).toMatch(/\S/);
    await look(title);
  }
  await page.click('nav button:text-is("Overview")');
}
