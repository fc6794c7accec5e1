/** The questions behind Time, asked of a file as the database process asks it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { empty, fill, insert } from "../../../../../test/make";
import type { TimePointRow } from "../../../../contract/time";
import { type Handle, open } from "../../../../database/open";

const sql = (name: string): string => readFileSync(join(__dirname, "..", "queries", `${name}.sql`), "utf8");
/** Of one second each. */
const VALUES = [40, 10, 20, 30, 5, 7, 6];

let folder: string;
let file: Handle;
let trial: number;
let others: number[];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-time-"));
  const path = join(folder, "time.sqlite");
  const db = empty(path);
  fill(db);
  const of = (sql: string): number => Object.values(db.prepare(sql).get() as Record<string, number>)[0] as number;
  trial = of("SELECT min(trial_id) FROM _trial WHERE status = 'ok'");
  const metric = of("SELECT metric_id FROM metric WHERE name = 'goodput'");
  db.exec(`DELETE FROM _sample WHERE trial_id = ${trial}`);
  insert(db, "_sample", { trial_id: trial, ordinal: 0, metric_id: metric, value: 1000 }); // of the whole trial
  VALUES.forEach((value, at) => {
    insert(db, "_sample", { trial_id: trial, ordinal: at + 1, metric_id: metric, t_start: at, t_end: at + 1, value });
  });
  // As bucket.py notes it: the first trial emptied it, and it was filled before the second one.
  const bucket = (level: number, resets: number) => ({
    capacity: 4e9,
    sustained: 125e6,
    level: -1,
    level_now: level,
    resets,
  });
  const states = [
    { node1: { before: { bucket: bucket(4e9, 0) }, after: { bucket: bucket(-2e6, 0) } } },
    { node1: { before: { bucket: bucket(-2e6, 0) }, after: { bucket: bucket(3e9, 1) } } },
    { node1: { before: { bucket: null }, after: {} } },
  ];
  others = (db.prepare("SELECT trial_id FROM _trial ORDER BY trial_id LIMIT 3").all() as { trial_id: number }[]).map(
    ({ trial_id }) => trial_id,
  );
  states.forEach((state, at) => {
    db.prepare("UPDATE _output SET node_state = ? WHERE trial_id = ?").run(JSON.stringify(state), others[at] ?? 0);
  });
  db.close();
  const answer = open(path, join(folder, "copies"));
  if (!answer.ok) throw new Error(answer.problem.title);
  file = answer.value;
});
afterAll(() => {
  file.close();
  rmSync(folder, { recursive: true, force: true });
});

const points = (whole: number[], sliced: number[]): TimePointRow[] => {
  const given = { whole: JSON.stringify(whole), sliced: JSON.stringify(sliced), slices: 2 };
  const answer = file.all("time_points", sql("time_points"), given);
  if (!answer.ok) throw new Error(answer.problem.title);
  return answer.value as TimePointRow[];
};

test("a trial is read as it is, without its value for the whole", () => {
  const found = points([trial], []);
  expect(found.map(({ t_start, t_end, middle, n }) => [t_start, t_end, middle, n])).toEqual(
    VALUES.map((value, at) => [at, at + 1, value, 1]),
  );
});

test("a long one in slices of its time: smallest, median and largest of each", () => {
  const found = points([], [trial]);
  // The longest starts its last second at 6: slices of three seconds.
  expect(found.map(({ t_start, t_end, low, middle, high, n }) => [t_start, t_end, low, middle, high, n])).toEqual([
    [0, 3, 10, 20, 40, 3],
    [3, 6, 5, 7, 30, 3],
    [6, 7, 6, 6, 6, 1],
  ]);
});

test("the median of an even number lies between the two in the middle", () => {
  const answer = file.all("even", "SELECT median(value) AS m FROM json_each('[1, 2, 4, 9]')", {});
  expect(answer).toEqual({ ok: true, value: [{ m: 3 }] });
});

test("a bucket that was filled before the trial began was full, whatever was noted before that", () => {
  const answer = file.all("time_buckets", sql("time_buckets"), { trials: JSON.stringify(others) });
  const [emptied, filled] = others;
  expect(answer).toEqual({
    ok: true,
    value: [
      { trial_id: emptied, capacity: 4e9, sustained: 125e6, before: 4e9, after: -2e6 },
      { trial_id: filled, capacity: 4e9, sustained: 125e6, before: 4e9, after: 3e9 },
    ],
  });
});
