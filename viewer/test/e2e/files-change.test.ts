/** Files that change while they are open, and what goes wrong beside them: the window says so and goes on. */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { insert, type Made, make } from "../make";
import { at, edited, filesWindow, folder, give, shownFile, viewer, withGiven } from "./files-window";
import { withViewer } from "./launch";

filesWindow();

test("moved away while it is open, and another put in its place: it says so, and opens the new one", async () => {
  const path = edited("moved.sqlite", "UPDATE _run SET cluster = 'the first'");
  await give(path);
  const { page } = viewer;
  await page.waitForSelector('main table:has-text("the first")');
  renameSync(path, at("moved-away.sqlite"));
  await page.waitForSelector('.banner:has-text("moved, renamed or deleted")');
  expect(await page.isVisible('main table:has-text("the first")')).toBe(true);
  edited("moved.sqlite", "UPDATE _run SET cluster = 'the second'");
  await page.waitForSelector('.banner:has-text("Another file has taken the place")');
  expect(await page.isVisible('main table:has-text("the second")')).toBe(false);
  await page.click("text=Open the new one");
  await page.waitForSelector('main table:has-text("the second")');
  expect(await page.isVisible(".banner")).toBe(false);
  unlinkSync(path);
  await page.waitForSelector('.banner:has-text("moved, renamed or deleted")');
  await page.click("text=Close it");
  await expect.poll(() => shownFile(page)).toBe("lab.sqlite");
});

test("written over in place with what is no database, the views say so; and come back with it", async () => {
  const path = make(at("overwritten.sqlite"));
  const whole = readFileSync(path);
  await withGiven(path, async (page) => {
    await page.waitForSelector("main table");
    writeFileSync(path, "no database at all, for the time being");
    await page.waitForSelector('main .problem:has-text("no SQLite database")');
    writeFileSync(path, whole);
    await page.waitForSelector("main table");
  });
});

/** A run that writes: in WAL mode, with one more run for each call. */
function writer(path: string): { db: Made; add: (cluster: string) => void } {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
  return {
    db,
    add: (cluster) =>
      insert(db, "_run", {
        run_id: `2027-${cluster}`,
        state: "running",
        origin: "measured",
        created_at: "2027-01-01T00:00:00Z",
        machine: "m",
        provider: "lxc",
        accelerator: "shared-kernel",
        cluster,
        profile: "none",
        profile_digest: "0".repeat(64),
        suite: "quick",
        suite_digest: "0".repeat(64),
        scale: 1,
        seed: 1,
        blocks: 1,
        role_digests: "{}",
        arguments: "{}",
      }),
  };
}

test("while a run writes the page follows, and the viewer does not keep its end from one plain file", async () => {
  const path = make(at("written.sqlite"));
  const { db, add } = writer(path);
  await withGiven(path, async (page) => {
    await page.waitForSelector("main table");
    add("alpha");
    await page.waitForSelector('main table:has-text("alpha")');
    add("beta");
    await page.waitForSelector('main table:has-text("beta")');
    const plain = () => {
      try {
        return (db.prepare("PRAGMA journal_mode = DELETE").get() as { journal_mode: string }).journal_mode;
      } catch (error) {
        return String(error);
      }
    };
    await expect.poll(plain, { timeout: 10_000 }).toBe("delete");
    db.close();
    expect(readdirSync(folder).filter((name) => name.startsWith("written"))).toEqual(["written.sqlite"]);
    expect(await page.isVisible('main table:has-text("beta")')).toBe(true);
  });
});

test.skipIf(process.getuid?.() === 0)(
  "left in the middle of writing, in a folder that may not be written to, it is read through a copy",
  async () => {
    const path = make(at("killed.sqlite"));
    const { db, add } = writer(path);
    add("in the log");
    mkdirSync(at("closed"));
    for (const end of ["", "-wal"]) copyFileSync(path + end, join(folder, "closed", `killed.sqlite${end}`));
    db.close();
    chmodSync(at("closed"), 0o555);
    await withGiven(join(folder, "closed", "killed.sqlite"), async (page) => {
      await page.waitForSelector('.banner:has-text("What you see is a copy")');
      await page.waitForSelector('main table:has-text("in the log")');
      expect(readdirSync(at("closed"))).toEqual(["killed.sqlite", "killed.sqlite-wal"]);
    });
  },
);

test.skipIf(process.getuid?.() === 0)(
  "copied without its log into such a folder, it opens and says what may be missing",
  async () => {
    const path = make(at("logless.sqlite"));
    const { db, add } = writer(path);
    add("in the log");
    mkdirSync(at("logless"));
    copyFileSync(path, join(folder, "logless", "logless.sqlite"));
    db.close();
    chmodSync(at("logless"), 0o555);
    await withGiven(join(folder, "logless", "logless.sqlite"), async (page) => {
      await page.waitForSelector('.banner:has-text("is missing here")');
      await page.waitForSelector("main table");
    });
  },
);

test("what a view throws stays in it: the rest works, and it can be tried again", async () => {
  const { page } = viewer;
  await page.evaluate(() => {
    const told = window as unknown as { sound: typeof Number.prototype.toFixed };
    told.sound = Number.prototype.toFixed;
    Number.prototype.toFixed = () => {
      throw new Error("spoiled on purpose");
    };
  });
  await page.click('nav button:text-is("Publications")');
  await page.click('nav button:text-is("Overview")');
  await page.waitForSelector('main .problem:has-text("could not be shown")');
  expect(await page.textContent("main .problem pre")).toContain("spoiled on purpose");
  expect(await page.isVisible("nav")).toBe(true);
  await page.evaluate(() => {
    Number.prototype.toFixed = (window as unknown as { sound: typeof Number.prototype.toFixed }).sound;
  });
  await page.click("text=Try again");
  await page.waitForSelector("main table");
  expect(await page.isVisible("main .problem")).toBe(false);
});

test("when the page's process ends, the page comes back with its file", async () => {
  await withViewer(
    { files: [at("lab.sqlite")], args: [`--home=${folder}`], expected: [/the page's process crashed/] },
    async ({ app, page }) => {
      await page.waitForSelector("main table");
      await app.evaluate(
        ({ BrowserWindow }) =>
          new Promise((done) => {
            const contents = BrowserWindow.getAllWindows()[0]?.webContents;
            contents?.once("did-finish-load", () => done(null));
            contents?.forcefullyCrashRenderer();
          }),
      );
      const table = () =>
        app.evaluate(({ BrowserWindow }) =>
          BrowserWindow.getAllWindows()[0]?.webContents.executeJavaScript(
            "document.querySelector('main table')?.textContent ?? ''",
          ),
        );
      await expect.poll(table, { timeout: 20_000 }).toContain("ordinary");
    },
  );
});
