/** What the documentation shows: each view on real recorded results, reached as a person reaches it. */
import type { Page } from "playwright-core";
import { choose, goTo, settled } from "../test/e2e/steps.ts";

export interface Scene {
  /** Of the file: viewer-NAME.png. */
  name: string;
  /** Looked at, and in no document: pictures weigh. */
  aside?: true;
  reach(page: Page): Promise<void>;
}

export const SCENES: Scene[] = [
  { name: "overview", reach: (page) => goTo(page, "Overview") },
  {
    name: "compare",
    async reach(page) {
      await goTo(page, "Compare");
      await choose(page, "Run", "2026-11-21 22:41"); // two modes of Weave, seven blocks
    },
  },
  {
    name: "compare-modes",
    aside: true,
    async reach(page) {
      await goTo(page, "Compare");
      await choose(page, "Run", "2026-11-21 20:17"); // 24 modes
    },
  },
  {
    name: "grid",
    async reach(page) {
      await goTo(page, "Compare");
      await page.getByRole("button", { name: "Tiers × overlays" }).click();
      await settled(page);
    },
  },
  {
    name: "load",
    async reach(page) {
      await goTo(page, "Offered load");
      await choose(page, "Run", "skybet-2017");
    },
  },
  {
    name: "latency",
    async reach(page) {
      await goTo(page, "Latency");
      await choose(page, "Run", "deitcher-2016");
    },
  },
  { name: "tiers", reach: (page) => goTo(page, "Tiers") },
  {
    name: "time",
    async reach(page) {
      await goTo(page, "Time");
      await choose(page, "Run", "quick · aws-t2.small");
    },
  },
  {
    name: "evidence",
    async reach(page) {
      await goTo(page, "Evidence");
      await choose(page, "Run", "skybet-2017");
      await choose(page, "Status", "void");
      await page.getByRole("region", { name: "Trials" }).getByRole("listitem").getByRole("button").first().click();
      await settled(page);
    },
  },
  {
    name: "runs",
    async reach(page) {
      await goTo(page, "Runs side by side");
      await choose(page, "First", "quick · aws-t2.medium", 1);
      await choose(page, "Second", "quick · aws-t2.medium", 0);
    },
  },
  { name: "publications", reach: (page) => goTo(page, "Publications") },
  {
    name: "training",
    async reach(page) {
      await goTo(page, "Training");
      await page.getByRole("button", { name: "2026-11-25 04:44" }).click(); // the one that was repaired
      await settled(page);
      await page.getByRole("button", { name: "Replay" }).evaluate((button) => button.scrollIntoView());
    },
  },
];
