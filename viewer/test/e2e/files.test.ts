/** Files that are not right, given to the real window: a message that says what to do, never a blank window, script or hang. */
import { execFileSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync } from "node:fs";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { empty, fill, make, NEWEST, ORDINARY } from "../make";
import {
  at,
  drop,
  edited,
  elsewhere,
  filesWindow,
  folder,
  give,
  seeAllViews,
  shownFile,
  viewer,
  withGiven,
  written,
} from "./files-window";
import { withViewer } from "./launch";
import { goTo, settled } from "./steps";

filesWindow();

test.each<[string, string, () => string]>([
  ["a text", "no SQLite database", () => written("notes.txt", "these are no results")],
  ["an empty file", "is empty", () => written("empty.sqlite", "")],
  [
    "another program's",
    "another program",
    () => {
      new DatabaseSync(at("other.sqlite")).exec("CREATE TABLE a (b)");
      return at("other.sqlite");
    },
  ],
  ["a newer one", "newer overlaylab", () => edited("newer.sqlite", `PRAGMA user_version = ${NEWEST + 1}`)],
  [
    "one cut short",
    "cut short",
    () => {
      truncateSync(make(at("cut.sqlite")), 70_000);
      return at("cut.sqlite");
    },
  ],
  [
    "a view for a table",
    "_trial is not as overlaylab makes it",
    () => edited("view.sqlite", "ALTER TABLE _trial RENAME TO t; CREATE VIEW _trial AS SELECT * FROM t"),
  ],
])("%s is refused with words, and the file before it stays", async (_name, words, given) => {
  await give(given());
  await viewer.page.waitForSelector(`.problem:has-text("${words}")`);
  expect(await viewer.page.textContent(".problem p")).toMatch(/\S/);
  expect(await shownFile(viewer.page)).toBe("lab.sqlite");
  expect(await viewer.page.isVisible("main table")).toBe(true);
});

test("what is no file at all is said to be that, and not waited for", async () => {
  execFileSync("mkfifo", [at("pipe")]);
  for (const [given, words] of [
    [folder, "a folder"],
    ["/dev/zero", "no ordinary file"],
    [at("pipe"), "no ordinary file"],
  ] as const) {
    await give(given);
    await viewer.page.waitForSelector(`.problem:has-text("${words}") .path:text-is("${given}")`);
  }
});

test("what cannot be opened at the start is said, with what to do instead", async () => {
  await withViewer({ files: [at("missing.sqlite")] }, async ({ page }) => {
    await page.waitForSelector('.problem:has-text("not there")');
    expect(await page.textContent(".problem")).toContain(at("missing.sqlite"));
    expect(await page.isVisible("text=Open a file…")).toBe(true);
  });
});

test("a file that may not be read is said to be that", async ({ skip }) => {
  make(at("private.sqlite"));
  chmodSync(at("private.sqlite"), 0);
  skip(
    await access(at("private.sqlite"), constants.R_OK).then(
      () => true,
      () => false,
    ),
    "this user may read everything",
  );
  await give(at("private.sqlite"));
  await viewer.page.waitForSelector('.problem:has-text("may not be read by this user")');
});

test("one of this lab's own says nothing; dropped, it is opened", async () => {
  make(at("second.sqlite"));
  await drop(viewer.page, at("second.sqlite"));
  await expect.poll(() => shownFile(viewer.page)).toBe("second.sqlite");
  expect(await viewer.page.isVisible(".banner, .problem")).toBe(false);
  await viewer.page.click('header button:text-is("Close")');
});

test("a bad file among several is told of over every view, until it is put away", async () => {
  const { page } = viewer;
  const told = page.locator(".failures .problem");
  await drop(
    page,
    written("notes.txt", "these are no results"),
    written("more.txt", "nor these"),
    make(at("one.sqlite")),
  );
  await expect.poll(() => shownFile(page)).toBe("one.sqlite");
  expect(await told.locator(".path").allTextContents()).toEqual([at("more.txt"), at("notes.txt")]);
  await page.click('nav button:text-is("Compare")');
  expect(await told.count()).toBe(2);
  await page.keyboard.press("Escape");
  expect(await told.locator(".path").allTextContents()).toEqual([at("notes.txt")]);
  await told.getByRole("button", { name: "Dismiss" }).click();
  expect(await told.count()).toBe(0);
  await page.click('nav button:text-is("Overview")');
  await page.click('header button:text-is("Close")');
});

test("what is said of a file goes when that file can be opened, by whatever way", async () => {
  const { page } = viewer;
  await drop(page, written("later.sqlite", "not yet"), written("notes.txt", "these are no results"));
  const told = page.locator(".failures .problem .path");
  await expect.poll(() => told.allTextContents()).toEqual([at("notes.txt"), at("later.sqlite")]);
  rmSync(at("later.sqlite"));
  await withGiven(make(at("later.sqlite")), async () => {
    expect(await told.allTextContents()).toEqual([at("notes.txt")]);
  });
});

test("a file from elsewhere, with more in it than it should have, says both", async () => {
  const path = join(elsewhere, "foreign.sqlite");
  renameSync(
    edited("foreign.sqlite", "CREATE TABLE own (a); CREATE TRIGGER t AFTER INSERT ON _run BEGIN DELETE FROM _run; END"),
    path,
  );
  await withGiven(path, async (page) => {
    const words = await page.textContent(".banner");
    expect(words).toContain("comes from elsewhere");
    expect(words).toContain(`outside of this lab's results (${folder})`);
    expect(words).toContain("measured on: foreign.sqlite");
    expect(words).toContain("table own, trigger t");
  });
});

test("a file of an older schema is shown through a copy, which goes with it", async () => {
  const path = make(at("older.sqlite"), ORDINARY, 2);
  const before = readFileSync(path);
  const copies = join(viewer.userData, "copies");
  await withGiven(path, async (page) => {
    await page.waitForSelector('.banner:has-text("older overlaylab (schema 2)")');
    await page.waitForSelector("main table");
    expect(readdirSync(copies)).toHaveLength(1);
    await seeAllViews(page);
  });
  await expect.poll(() => readdirSync(copies)).toEqual([]);
  expect(readFileSync(path).equals(before)).toBe(true);
});

const HOSTILE = `<img src="x:" onerror="window.spoiled=1"><script>window.spoiled=1</script></td></table>"'\`\${window.spoiled=1}{{1}}&amp;&#60;b&#62;`;
const TURNED = "\u202e\u2066abc\u0000\u0007\u001b[31m\u200b\ufeff עברית العربية";

/** A hostile text in every text column, and another JSON than expected in every JSON column. */
function hostile(path: string): string {
  const db = empty(path);
  // The newest, which the views begin with, holds both kinds; the others are to be chosen.
  const turned = TURNED.replaceAll("\0", "");
  fill(db, { text: "long ".repeat(2000), json: '{"length":-1,"overlay":{}}', value: 5e-324 }, "run1");
  fill(db, { text: "x", json: `${"[".repeat(900)}${"]".repeat(900)}`, value: 0 }, "run2");
  fill(db, { text: "y", json: "null", value: -1e308 }, "run3");
  const json = JSON.stringify([HOSTILE, null, { a: turned }]);
  fill(db, { text: turned + HOSTILE, json, value: Number.POSITIVE_INFINITY }, `run9 ${turned} <b>1</b>`);
  const megabyte = "M".repeat(1e6);
  for (const [table, column] of [
    ["_run", "machine"],
    ["_output", "stdout"],
    ["_evidence", "reason"],
    ["_published", "note"],
    ["_node", "zone"],
    ["_variant", "mode"],
  ]) {
    db.prepare(
      `UPDATE ${table} SET ${column} = ? WHERE rowid IN (SELECT max(rowid) FROM ${table})`.replace(
        /rowid/g,
        table === "_node" ? "run_id" : "rowid",
      ),
    ).run(megabyte);
  }
  db.close();
  return path;
}

test("no text of a file becomes markup or a script, and none is in the way", async () => {
  await withGiven(hostile(at("hostile.sqlite")), async (page) => {
    await page.waitForSelector("main table");
    const found: string[] = [];
    await seeAllViews(page, async (title) => {
      const hidden = /.{0,60}[\u0007\u001b\u200b\u202e\u2066\ufeff].{0,60}/;
      const text = hidden.exec((await page.textContent("body")) ?? "")?.[0];
      if (text !== undefined) found.push(`${title}: ${JSON.stringify(text)}`);
    });
    expect(found).toEqual([]);
    expect(await page.evaluate(() => "spoiled" in window)).toBe(false);
    expect(await page.$$eval("main img, main script, main iframe, body > img", (all) => all.length)).toBe(0);
  });
});

test("a text without a space to break at makes no view wider than the window", async () => {
  const db = empty(at("unbroken.sqlite"));
  const text = "unbroken".repeat(300);
  for (const run of ["run1", "run2"]) fill(db, { ...ORDINARY, text }, run);
  db.close();
  await withGiven(at("unbroken.sqlite"), async (page) => {
    const tooWide: string[] = [];
    await seeAllViews(page, async (title) => {
      await settled(page);
      const over = await page.$$eval(".content, main", (all) => all.map((each) => each.scrollWidth - each.clientWidth));
      if (Math.max(...over) > 0) tooWide.push(`${title}: ${over}`);
    });
    expect(tooWide).toEqual([]);
  });
});

test("gaps and infinite numbers are no reason to fall", async () => {
  const db = empty(at("gaps.sqlite"));
  fill(db);
  db.exec(`
    UPDATE _run SET started_at = NULL, ended_at = NULL, image = NULL, stands_for = NULL, state = 'running';
    DELETE FROM _comparison; DELETE FROM _histogram; DELETE FROM _profile_check; DELETE FROM _published;
    UPDATE _node SET zone = NULL, details = NULL;
    UPDATE _trial SET duration = NULL, argv = NULL, exit_code = NULL, tool_version = NULL, overlay_version = NULL, overlay_mtu = NULL, underlay_mtu = NULL;
    DELETE FROM _trial_summary WHERE metric_id <> 10;
    UPDATE _sample SET t_start = NULL, t_end = NULL;
    UPDATE _trial_summary SET value = 9e999, mean = 9e999, max = 9e999, p99 = 9e999`);
  db.close();
  empty(at("planned.sqlite")).close();
  const planned = new DatabaseSync(at("planned.sqlite"));
  fill(planned);
  planned.exec(
    "DELETE FROM _comparison; DELETE FROM _comparison_made; DELETE FROM _evidence; DELETE FROM _histogram; DELETE FROM _trial_summary; DELETE FROM _sample; DELETE FROM _output; UPDATE _trial SET status = 'planned', started_at = NULL, reason = NULL",
  );
  planned.close();
  empty(at("rowless.sqlite")).close();
  for (const name of ["gaps.sqlite", "planned.sqlite", "rowless.sqlite"]) {
    await withGiven(at(name), async (page) => {
      await seeAllViews(page, async (title) => {
        const words = (await page.textContent("main")) ?? "";
        expect(words.split("This file holds no run yet").length, `${name}, ${title}`).toBeLessThan(3);
      });
      expect(await page.isVisible(".problem")).toBe(false);
    });
  }
});

test.each([
  ["void", "all 8 trials are void", "8 withdrawn (void)"],
  ["failed", "all 8 trials failed", "8 failed"],
])("a run whose trials are all %s says that in every view, and leads to why", async (status, words, named) => {
  const path = edited(
    `all-${status}.sqlite`,
    `UPDATE _trial SET tool = 'netperf'; UPDATE _trial SET status = '${status}', reason = 'it broke' WHERE status <> 'planned';
     DELETE FROM _comparison; DELETE FROM _comparison_made`,
  );
  await withGiven(path, async (page) => {
    for (const title of ["Overview", "Compare", "Latency", "Time"]) {
      await goTo(page, title);
      const said = page.locator("main .empty", { hasText: words });
      expect(await said.count(), title).toBe(1);
      const all = await page.locator("main").innerText();
      expect(all).not.toMatch(
        /percentiles only|one value for the whole|no block of it has ended|no block was finished/,
      );
      if (["Latency", "Time"].includes(title)) expect(all).toContain(`Not drawn: ${named}`);
      await said.getByRole("button", { name: "Evidence" }).click();
      await page.locator('main[aria-label="Evidence"]').waitFor();
    }
    await goTo(page, "Runs side by side");
    const said = page.locator("main .empty", { hasText: words });
    expect(await page.textContent("main")).toContain("Only one run that is open has a trial that holds.");
    await said.getByRole("button", { name: "Evidence" }).click();
    await page.getByText("it broke").first().waitFor();
    await goTo(page, "Overview");
  });
});

test("a text that has to be JSON and is none gives a message", async () => {
  edited(
    "json.sqlite",
    "PRAGMA ignore_check_constraints = ON; UPDATE _node SET details = '{'; UPDATE _run SET arguments = '{', role_digests = 'x', stands_for = '}'",
  );
  await withGiven(at("json.sqlite"), async (page) => {
    await page.waitForSelector('.problem:has-text("has to be JSON")');
    await seeAllViews(page);
  });
});

test("many things named alike by a hand that edits the schema are refused, not believed", async () => {
  await drop(
    viewer.page,
    edited(
      "twice.sqlite",
      "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT 'view', '_run', '_run', 0, 'CREATE VIEW extra AS SELECT 1'",
    ),
  );
  await viewer.page.waitForSelector(".problem");
  expect(await shownFile(viewer.page)).toBe("lab.sqlite");
});
