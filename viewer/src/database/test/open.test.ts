import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { empty, fill, make, NEWEST, ORDINARY, RUN_ID } from "../../../test/make";
import { type Handle, open } from "../open";

let folder: string;
let sound: string;
const opened: Handle[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-open-"));
  sound = make(join(folder, "sound.sqlite"));
});
afterEach(() => {
  for (const handle of opened.splice(0)) handle.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const at = (name: string): string => join(folder, name);
const copy = (name: string): string => {
  copyFileSync(sound, at(name));
  return at(name);
};

function held(path: string): Handle {
  const answer = open(path, at("copies"));
  if (!answer.ok) throw new Error(`${answer.problem.code}: ${answer.problem.title} ${answer.problem.detail}`);
  opened.push(answer.value);
  return answer.value;
}

/** The problem's code, and that it says what is wrong and what to do. */
function refused(path: string): string {
  const answer = open(path, at("copies"));
  if (answer.ok) {
    opened.push(answer.value);
    return "opened";
  }
  expect(answer.problem.title).toMatch(/^[A-Z].*\.$/s);
  expect(answer.problem.advice).toMatch(/\.|:/);
  return answer.problem.code;
}

const trials = (handle: Handle): unknown => handle.all("trials", "SELECT count(*) AS n FROM trial", {});

function edited(name: string, sql: string, version = NEWEST): string {
  const db = empty(at(name), version);
  fill(db);
  db.exec(sql);
  db.close();
  return at(name);
}

test("one of ours opens with nothing to say, and leaves nothing beside itself", () => {
  const handle = held(sound);
  expect(handle.about).toMatchObject({ schemaVersion: NEWEST, foreign: [], notes: [], machines: ["ordinary"] });
  expect(trials(handle)).toEqual({ ok: true, value: [{ n: 10 }] });
  expect(readdirSync(folder).filter((name) => name.startsWith("sound"))).toEqual(["sound.sqlite"]);
});

test("a file without a row opens", () => {
  empty(at("rowless.sqlite")).close();
  expect(trials(held(at("rowless.sqlite")))).toEqual({ ok: true, value: [{ n: 0 }] });
});

test("what is no database is called so", () => {
  expect(refused(at("missing.sqlite"))).toBe("absent");
  expect(refused(join(sound, "below.sqlite"))).toBe("absent");
  expect(refused(folder)).toBe("not-a-database");
  expect(refused("/dev/null")).toBe("not-a-database");
  expect(refused("/dev/zero")).toBe("not-a-database");
  writeFileSync(at("empty.sqlite"), "");
  expect(refused(at("empty.sqlite"))).toBe("empty");
  writeFileSync(at("text.sqlite"), "SQLite is what this is not\n".repeat(1000));
  expect(refused(at("text.sqlite"))).toBe("not-a-database");
  writeFileSync(at("magic.sqlite"), "SQLite format 3\0");
  expect(refused(at("magic.sqlite"))).toBe("damaged");
  symlinkSync(at("loop"), at("loop"));
  expect(refused(at("loop"))).toBe("not-a-database");
});

test("a pipe that nobody writes to is not waited for", () => {
  execFileSync("mkfifo", [at("pipe")]);
  expect(refused(at("pipe"))).toBe("not-a-database");
});

test("a database of another program is called so", () => {
  const db = new DatabaseSync(at("other.sqlite"));
  db.exec("CREATE TABLE moz_places (id INTEGER PRIMARY KEY); PRAGMA user_version = 6");
  db.close();
  expect(refused(at("other.sqlite"))).toBe("not-ours");
});

test("a newer schema is refused, and one that says nothing", () => {
  expect(refused(edited("newer.sqlite", `PRAGMA user_version = ${NEWEST + 1}`))).toBe("newer");
  expect(refused(edited("zero.sqlite", "PRAGMA user_version = 0"))).toBe("altered");
  expect(refused(edited("negative.sqlite", "PRAGMA user_version = -1"))).toBe("altered");
});

test.each(
  [...Array(NEWEST - 1).keys()].map((before) => before + 1),
)("schema %i is shown through a copy, and the file stays as it is", (version) => {
  const path = make(at(`old-${version}.sqlite`), ORDINARY, version);
  const before = readFileSync(path);
  const handle = held(path);
  expect(handle.about.notes.join()).toMatch(`older overlaylab (schema ${version})`);
  expect(handle.about.schemaVersion).toBe(version);
  expect(trials(handle)).toEqual({ ok: true, value: [{ n: 10 }] });
  expect(handle.all("comparisons", "SELECT count(*) AS n FROM comparison", {})).toEqual({
    ok: true,
    value: [{ n: version < 6 ? 0 : 2 }],
  });
  expect(readFileSync(path).equals(before)).toBe(true);
  expect(readdirSync(folder).filter((name) => name.startsWith(`old-${version}`))).toEqual([`old-${version}.sqlite`]);
});

test("an older file to which others wrote is not brought up to date: that would run what they left", () => {
  expect(
    refused(
      edited("old-trigger.sqlite", "CREATE TRIGGER t AFTER INSERT ON metric BEGIN DELETE FROM _run; END", NEWEST - 1),
    ),
  ).toBe("older");
});

test("cut short anywhere it is called damaged, or not a database", () => {
  const whole = readFileSync(sound);
  const cuts = [1, 15, 16, 17, 99, 100, 101, 511, 512, 1024, 4095, 4096, 4097, whole.length - 4096, whole.length - 1];
  for (let cut = 8192; cut < whole.length; cut += 4096 + 512) cuts.push(cut);
  for (const cut of cuts) {
    const path = copy("cut.sqlite");
    truncateSync(path, cut);
    expect([cut, refused(path)]).toEqual([cut, cut < 15 ? "not-a-database" : "damaged"]);
  }
});

test("damaged anywhere, it answers or says so: never another exception", () => {
  const whole = readFileSync(sound);
  const codes = new Set<string>();
  for (let page = 1; page < whole.length / 4096; page++) {
    const bytes = Buffer.from(whole);
    bytes.fill(0xa5, page * 4096, page * 4096 + 2048);
    writeFileSync(at("scribbled.sqlite"), bytes);
    const answer = open(at("scribbled.sqlite"), at("copies"));
    if (!answer.ok) {
      codes.add(answer.problem.code);
      continue;
    }
    for (const view of [
      "run",
      "trial",
      "result",
      "evidence",
      "published",
      "comparison",
      "trial_summary",
      "histogram",
      "profile_check",
    ]) {
      try {
        answer.value.all(view, `SELECT * FROM ${view}`, {});
      } catch (error) {
        codes.add(String((error as Error).message));
      }
    }
    answer.value.close();
  }
  for (const code of codes)
    expect(code).toMatch(/^(damaged|altered|not-ours|older|newer|database disk image is malformed)$/);
  expect(codes.has("database disk image is malformed")).toBe(true);
});

test("a table that is not as it was made is refused", () => {
  const cases: [string, string][] = [
    ["missing", "DROP TABLE _histogram"],
    ["view", "ALTER TABLE _trial RENAME TO _t; CREATE VIEW _trial AS SELECT * FROM _t"],
    ["column", "ALTER TABLE _output ADD COLUMN more TEXT"],
    ["generated", "ALTER TABLE _output ADD COLUMN more TEXT AS (upper(stdout))"],
    [
      "check",
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'stderr      TEXT NOT NULL', 'stderr      TEXT CHECK (abs(1))') WHERE name = '_output'",
    ],
    [
      "hidden",
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'TEXT NOT NULL,\n    stderr', 'TEXT DEFAULT ''--'' NOT NULL,\n    stderr') WHERE name = '_output'",
    ],
    ["virtual", "DROP TABLE _histogram; CREATE VIRTUAL TABLE _histogram USING fts5(a)"],
    [
      "twice",
      "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT 'view', '_run', '_run', 0, 'CREATE VIEW extra AS SELECT 1' ",
    ],
    ["no sql", "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'garbage' WHERE name = '_sample'"],
  ];
  for (const [name, sql] of cases)
    expect([name, refused(edited(`altered-${name}.sqlite`, sql))]).toEqual([
      name,
      expect.stringMatching(/^(altered|damaged)$/),
    ]);
});

test("what a file brings along is said, and never run", () => {
  const path = edited(
    "foreign.sqlite",
    `CREATE TABLE own (a);
     CREATE VIEW secret AS SELECT load_extension('/tmp/evil') AS a;
     CREATE TRIGGER t AFTER INSERT ON _run BEGIN DELETE FROM _run; END;
     CREATE INDEX odd ON _run (upper(machine));
     CREATE VIRTUAL TABLE words USING fts5(a);
     DROP VIEW run; CREATE VIEW run AS SELECT 'forged' AS run_id;
     DROP INDEX _evidence_of_run; CREATE INDEX _evidence_of_run ON _evidence (run_id) WHERE run_id = 'x'`,
  );
  const handle = held(path);
  expect(handle.about.foreign).toHaveLength(2);
  expect(handle.about.foreign[0]).toContain("table own, view secret, trigger t, index odd");
  expect(handle.about.foreign[1]).toContain("view run");
  expect(handle.about.foreign[1]).toContain("index _evidence_of_run");
  expect(handle.all("run", "SELECT run_id FROM run", {})).toEqual({ ok: true, value: [{ run_id: RUN_ID }] });
  expect(
    handle.all("evidence", "SELECT count(*) AS n FROM evidence WHERE run_id = 'x' OR run_id = :run", { run: RUN_ID }),
  ).toEqual({ ok: true, value: [{ n: 8 }] });
});

test("a statement reads our tables, our views and JSON, and does nothing else", () => {
  const handle = held(edited("foreign-2.sqlite", "CREATE TABLE own (a); CREATE VIEW secret AS SELECT * FROM _run"));
  expect(handle.all("json", "SELECT e.value AS v FROM run, json_each('[1]') AS e", {})).toEqual({
    ok: true,
    value: [{ v: 1 }],
  });
  expect(
    handle.all(
      "cte",
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT max(i) AS i FROM n",
      {},
    ),
  ).toEqual({ ok: true, value: [{ i: 3 }] });
  for (const [at, sql] of [
    "SELECT * FROM own",
    "SELECT * FROM secret",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM main.secret",
    "SELECT * FROM main.run",
    "DELETE FROM _run",
    "PRAGMA journal_mode = WAL",
    "ATTACH '/etc/passwd' AS p",
    "CREATE TEMP TABLE x (a)",
    "BEGIN",
  ].entries()) {
    expect([sql, thrown(() => handle.all(`q${at}`, sql, {}))]).toEqual([
      sql,
      expect.stringMatching(/not authorized|prohibited|authoriz/),
    ]);
  }
});

function thrown(act: () => unknown): string {
  try {
    return JSON.stringify(act());
  } catch (error) {
    return String(error);
  }
}

test("numbers that JavaScript cannot hold are rounded, infinite ones stay, bytes are nothing", () => {
  const path = edited(
    "numbers.sqlite",
    `PRAGMA ignore_check_constraints = ON;
     UPDATE _run SET seed = 9223372036854775807;
     UPDATE _trial_summary SET value = 9e999, min = -9e999;`,
  );
  const handle = held(path);
  expect(handle.all("seed", "SELECT seed, scale FROM run", {})).toEqual({
    ok: true,
    value: [{ seed: 2 ** 63, scale: 1 }],
  });
  expect(handle.all("value", "SELECT value, min FROM trial_summary LIMIT 1", {})).toEqual({
    ok: true,
    value: [{ value: Infinity, min: -Infinity }],
  });
  expect(handle.all("bytes", "SELECT x'00ff' AS b FROM run", {})).toEqual({ ok: true, value: [{ b: null }] });
});

test("an answer that no page could take is refused, and the next one comes", () => {
  const handle = held(sound);
  const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
  expect(handle.all("many", many, {})).toMatchObject({ ok: false, problem: { code: "too-large" } });
  const large =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(zeroblob(1000000)) AS h FROM n";
  expect(handle.all("large", large, {})).toMatchObject({ ok: false, problem: { code: "too-large" } });
  expect(thrown(() => handle.all("huge", "SELECT hex(zeroblob(50000000)) AS h", {}))).toMatch(/too big/);
  expect(trials(handle)).toEqual({ ok: true, value: [{ n: 10 }] });
});

test("a change of the file's structure is noticed before the next question", () => {
  const path = copy("changing.sqlite");
  const handle = held(path);
  expect(handle.stale()).toBe(false);
  const db = new DatabaseSync(path);
  db.exec("CREATE TABLE own (a)");
  db.close();
  expect(handle.stale()).toBe(true);
  expect(held(path).about.foreign[0]).toContain("table own");
});

/** A file in the middle of a run: a writer holds it in WAL mode, and its newest trial is in the log alone. */
function writing(name: string): { path: string; end: () => void } {
  mkdirSync(at(name));
  const path = make(join(folder, name, "lab.sqlite"));
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_checkpoint(TRUNCATE); UPDATE _run SET machine = 'newest'");
  return { path, end: () => db.close() };
}

const machine = (handle: Handle): unknown => handle.all("machine", "SELECT machine FROM run", {});

test("while a run writes, what it stored last is read", () => {
  const { path, end } = writing("live");
  const handle = held(path);
  expect(machine(handle)).toEqual({ ok: true, value: [{ machine: "newest" }] });
  expect(handle.about.notes).toEqual([]);
  expect(handle.wal).toBe(true);
  end();
});

test("copied without its log, it opens and says that the newest may be missing; nothing is left beside it", () => {
  const { path, end } = writing("logless");
  mkdirSync(at("logless-copy"));
  copyFileSync(path, at("logless-copy/lab.sqlite"));
  end();
  const handle = held(at("logless-copy/lab.sqlite"));
  expect(machine(handle)).toEqual({ ok: true, value: [{ machine: "ordinary" }] });
  expect(handle.about.notes.join()).toMatch(/-wal/);
  expect(readdirSync(at("logless-copy"))).toEqual(["lab.sqlite"]);
  expect(handle.stale()).toBe(false);
  renameSync(at("logless-copy/lab.sqlite"), at("logless-copy/other.sqlite"));
  expect(handle.stale()).toBe(true);
});

test("with a log that is not its own it answers or is called damaged", () => {
  const { path, end } = writing("stale");
  mkdirSync(at("stale-copy"));
  const other = edited("stale-copy/lab.sqlite", "DELETE FROM _sample; VACUUM");
  copyFileSync(`${path}-wal`, `${other}-wal`);
  end();
  expect(refused(other)).toMatch(/^(opened|damaged|altered|not-ours|older)$/);
});
