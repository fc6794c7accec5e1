/** What somebody does in the window, and when they see that it is done. */
import type { Page } from "playwright-core";

/** Nothing is read or drawn any more, for a few frames: a question may be put only after the answer to another. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(
    () =>
      new Promise<void>((done) => {
        let quiet = 0;
        const look = () => {
          const main = document.querySelector("main");
          const ready =
            main && !main.querySelector(".waiting, .plot:not([data-drawn])") && (main.textContent ?? "").length > 40;
          quiet = ready ? quiet + 1 : 0;
          if (quiet > 3) done();
          else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      }),
  );
}

/** The file given at the start is there: until then the page says what to open. */
export async function opened(page: Page): Promise<void> {
  await page.getByRole("banner").getByRole("button", { name: "Close", exact: true }).waitFor();
  await settled(page);
}

export async function goTo(page: Page, view: string): Promise<void> {
  await page.getByRole("navigation").getByRole("button", { name: view, exact: true }).click();
  await settled(page);
}

/** By words of the option, as in "quick · azure-a1"; the one that many lines after the first of them, newest first. */
export async function choose(page: Page, label: string, words: string, after = 0): Promise<void> {
  const select = page.getByRole("main").getByRole("combobox", { name: label, exact: true });
  await select.waitFor();
  const options = await select.locator("option").allTextContents();
  const found = options.filter((each) => each.includes(words))[after];
  if (found === undefined)
    throw new Error(`${label} offers nothing with "${words}", number ${after + 1}: ${options.join(" | ")}`);
  await select.selectOption({ label: found });
  await settled(page);
}
