/**
 * Pictures of every view: `node screenshots/take.mts` writes them into the folder VIEWER_OUT, `… all` in two sizes, light
 * and dark, those under names that say so. Each waits for what it shows, and none is taken of a page that complains.
 */
import { join } from "node:path";
import { launch, VIEWER } from "../test/e2e/launch.ts";
import { opened, settled } from "../test/e2e/steps.ts";
import { SCENES } from "./scenes.ts";

const out = process.env.VIEWER_OUT;
if (!out) throw new Error("VIEWER_OUT must name a folder: run this with ./task viewer:screenshots");
const [which, ...names] = process.argv.slice(2);
const all = which === "all";
const scenes = SCENES.filter(({ name, aside }) => (names.length ? names.includes(name) : all || !aside));
const sizes = [{ width: 1280, height: 800 }, ...(all ? [{ width: 1920, height: 1080 }] : [])];
const themes = all ? ["light", "dark"] : ["light"];

for (const size of sizes) {
  // Each size a window of its own: as large as its contents from the start.
  const viewer = await launch({
    files: [join(VIEWER, "dist", "demo.sqlite")],
    settings: { theme: "light", window: size },
  });
  const { page } = viewer;
  try {
    await page.setViewportSize(size);
    await opened(page);
    for (const scene of scenes) {
      await page.getByLabel("Theme").selectOption("light");
      await scene.reach(page);
      for (const theme of themes) {
        await page.getByLabel("Theme").selectOption(theme);
        await settled(page);
        // No control looks pressed or pointed at that is not.
        await page.mouse.move(0, 0);
        await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
        const path = join(out, all ? `${scene.name}-${size.width}-${theme}.png` : `viewer-${scene.name}.png`);
        await page.screenshot({ path });
        console.log(path.slice(out.length + 1));
      }
    }
  } finally {
    await viewer.close();
  }
}
