/** Training over synthetic attempts: the questions as the database process asks them, and the figures of their rows. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  addAttempt,
  addCycle,
  addEvent,
  addRunning,
  attemptsFile,
  cycle,
  DEBRIEF,
  TICKET,
} from "../../../../../test/attempts";
import { empty } from "../../../../../test/make";
import type { AttemptEventRow, AttemptRow, LevelRow, SliceRow } from "../../../../contract/training";
import { type Handle, open } from "../../../../database/open";
import { asText, traces, UNITS } from "../../../charts/test/golden";
import { byDrill } from "../drills";
import { debriefOf, hintOf, marksOf, ticketOf } from "../events";
import { blocksOf } from "../markdown";
import { spanOf } from "../marks";
import { measureFigure } from "../measure-figure";
import { passesFigure } from "../passes-figure";
import { clock, elapsed, silence } from "../words";

const REPAIRED = "20260105T141000Z-0001";
const RUNNING = "20260108T090000Z-0004";
const sql = (name: string): string => readFileSync(join(__dirname, "..", "queries", `${name}.sql`), "utf8");

let folder: string;
const opened: Handle[] = [];
let file: Handle;

function held(path: string): Handle {
  const answer = open(path, join(folder, "copies"));
  if (!answer.ok) throw new Error(answer.problem.title);
  opened.push(answer.value);
  return answer.value;
}

function asked<Row>(of: Handle, name: string, given: Record<string, string | number> = {}): Row[] {
  const answer = of.all(name, sql(name), given);
  if (!answer.ok) throw new Error(answer.problem.title);
  return answer.value as Row[];
}

const eventsOf = (of: Handle, attempt: string) => asked<AttemptEventRow>(of, "attempt_events", { attempt });
const attemptsOf = (of: Handle) => asked<AttemptRow>(of, "attempts");

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "overlaylab-training-"));
  const path = join(folder, "training.sqlite");
  attemptsFile(path).close();
  file = held(path);
});
afterAll(() => {
  for (const handle of opened) handle.close();
  rmSync(folder, { recursive: true, force: true });
});

test("attempts come newest first, with what they took, and drills with their history", () => {
  const attempts = attemptsOf(file);
  expect(attempts.map(({ state, trainee, duration, score }) => [state, trainee, duration, score])).toEqual([
    ["abandoned", null, null, null],
    ["given-up", "Robin", 300, null],
    ["repaired", "Kim", 300, 75],
  ]);
  expect(attempts.map(({ hints, failed_checks, last_t, hidden }) => [hints, failed_checks, last_t, hidden])).toEqual([
    [0, 0, null, 0],
    [0, 0, null, 0],
    [1, 1, null, 0],
  ]);
  expect(byDrill(attempts)).toEqual([
    {
      drill: "downloads-hang",
      title: "Pages answer, downloads hang",
      level: 1,
      tries: 3,
      repaired: 1,
      bestScore: 75,
      shortest: 300,
      last: "2026-01-07T09:00:00Z",
    },
  ]);
});

test("figures: what came through, and goodput beside its healthy level, with the events marked", async () => {
  const marks = marksOf(eventsOf(file, REPAIRED));
  const rows = asked<SliceRow>(file, "attempt_slices", { attempt: REPAIRED, last: 1e9, slices: 40 });
  const levels = asked<LevelRow>(file, "attempt_levels", { attempt: REPAIRED, passes: 5 });
  const span = spanOf(rows, marks);
  const of = <Row extends { measure: string }>(all: Row[], measure: string) =>
    all.filter((row) => row.measure === measure);
  await expect(asText(passesFigure(rows, marks, span))).toMatchFileSnapshot("golden/training-passes.json");
  for (const measure of ["goodput", "rtt"]) {
    const input = { measure, rows: of(rows, measure), levels: of(levels, measure), marks, span, settings: UNITS };
    await expect(asText(measureFigure(input))).toMatchFileSnapshot(`golden/training-${measure}.json`);
  }
});

test("events in words, numbered as in the list", () => {
  expect(marksOf(eventsOf(file, REPAIRED)).map(({ t, short, words }) => [t, short, words])).toEqual([
    [-30, "", "the service measured while all is well"],
    [-12, "", "the fault is in"],
    [-4, "", "the symptom can be felt"],
    [0, "ticket", "the ticket"],
    [90, "H1", "hint 1, 5 points"],
    [180, "C1", "check 1: 1 probe not as before, refused by 1 guard"],
    [290, "C2", "check 2: the service is back"],
    [300, "repaired", "repaired"],
  ]);
});

test("the cause is not read before the attempt has ended, even where a file tells it too early", () => {
  const path = join(folder, "running.sqlite");
  const db = empty(path);
  addRunning(db, RUNNING, 30);
  const early = { ...DEBRIEF, text: "Look at the resolver.", cost: 5 };
  for (const kind of ["injected", "shown", "baseline", "solved-step", "repaired"])
    addEvent(db, RUNNING, 5, kind, early);
  addEvent(db, RUNNING, 6, "hint", early);
  addEvent(db, RUNNING, 7, "ticket", { ...TICKET, ...DEBRIEF });
  db.close();
  const events = eventsOf(held(path), RUNNING);
  expect(JSON.stringify(events)).not.toMatch(/fragmentation|path MTU|RFC/);
  expect(events.filter(({ kind }) => kind === "hint").map(hintOf)).toEqual([
    { text: "Look at the resolver.", cost: 5 },
  ]);
  expect(events.filter(({ kind }) => kind === "ticket").map((each) => ticketOf(each)?.ticket)).toHaveLength(2);
  expect(debriefOf(events)).toBeNull();
});

test("while a drill is at hand, what its earlier attempts tell of the cause is not read; of other drills it is", () => {
  const path = join(folder, "again.sqlite");
  const db = attemptsFile(path);
  addAttempt(db, { id: "20260104T000000Z-0000", started: "2026-01-04T00:00:00Z", state: "given-up", drill: "other" });
  addEvent(db, "20260104T000000Z-0000", 300, "given-up", DEBRIEF);
  addRunning(db, RUNNING, 30, "downloads-hang");
  db.close();
  const again = held(path);
  const attempts = attemptsOf(again);
  expect(attempts.map(({ attempt_id, hidden }) => [attempt_id.slice(-4), hidden])).toEqual([
    ["0004", 0],
    ["0003", 1],
    ["0002", 1],
    ["0001", 1],
    ["0000", 0],
  ]);
  expect(attempts.find(({ attempt_id }) => attempt_id === REPAIRED)?.cause).toBeNull();
  const events = eventsOf(again, REPAIRED);
  expect(events.filter(({ detail }) => detail !== "{}").map(({ kind }) => kind)).toEqual(["ticket"]);
  expect(debriefOf(eventsOf(again, "20260104T000000Z-0000"))?.topics).toEqual(DEBRIEF.topics);
});

test("its debrief is told once it has ended", () => {
  expect(debriefOf(eventsOf(file, REPAIRED))).toEqual(DEBRIEF);
  expect(debriefOf([])).toBeNull();
});

test("levels: what the healthy nodes had, and the newest passes", () => {
  const levels = asked<LevelRow>(file, "attempt_levels", { attempt: REPAIRED, passes: 5 });
  const fetched = levels.filter(({ measure, role }) => measure === "fetched" && role === "client");
  expect(fetched.map(({ level, value, n, measured }) => [level, value, n, measured])).toEqual([
    ["healthy", 1, 11, 11],
    ["now", 1, 5, 5],
  ]);
});

test("of a drill at hand the newest minutes are read, and the newest passes", () => {
  const path = join(folder, "long.sqlite");
  const db = empty(path);
  addRunning(db, RUNNING, 400);
  db.close();
  const long = held(path);
  const rows = asked<SliceRow>(long, "attempt_slices", { attempt: RUNNING, last: 100, slices: 400 });
  const client = rows.filter(({ measure, role }) => measure === "page" && role === "client");
  expect([client.length, client[0]?.t, client.at(-1)?.t]).toEqual([101, 299, 399]);
  const levels = asked<LevelRow>(long, "attempt_levels", { attempt: RUNNING, passes: 5 });
  const fetched = levels.filter(({ measure, role }) => measure === "fetched" && role === "server");
  expect(fetched.map(({ level, value, n }) => [level, value, n])).toEqual([
    ["healthy", 1, 10],
    ["now", 0, 5],
  ]);
});

test("what could not be measured is no value: the line has a gap and a mark with its reason, a strip is empty", () => {
  const path = join(folder, "gone.sqlite");
  const db = empty(path);
  addAttempt(db, { id: "a", started: "2026-01-04T00:00:00Z", state: "abandoned" });
  const gone = { rtt: "no answer", answered: "the node did not answer" };
  addCycle(db, "a", cycle(1, "client", "running", false));
  addCycle(db, "a", { t: 2, role: "client", phase: "running", values: {}, reasons: gone });
  addCycle(db, "a", cycle(90, "client", "running", false));
  db.close();
  const rows = asked<SliceRow>(held(path), "attempt_slices", { attempt: "a", last: 1e9, slices: 400 });
  const span = spanOf(rows, []);
  const rtt = rows.filter(({ measure }) => measure === "rtt");
  const [line, mark] = traces(
    measureFigure({ measure: "rtt", rows: rtt, levels: [], marks: [], span, settings: UNITS }),
  );
  expect(line?.x).toEqual([1 / 60, 2 / 60, null, 1.5]);
  expect(line?.y.map((value) => value !== null)).toEqual([true, false, false, true]);
  expect(mark).toMatchObject({ mode: "markers", x: [2 / 60], text: ["no answer"] });
  const [strip] = passesFigure(rows, [], span).data as unknown as { x: number[]; z: (number | null)[][] }[];
  expect(strip?.x.map((minutes) => Math.round(minutes * 60))).toEqual([0, 1, 2, 89, 90]);
  expect(strip?.z).toEqual([[1, null, null, 1]]);
});

test("the clock runs from the ticket, and stands where the attempt has ended", () => {
  const started_at = "2026-01-01T00:00:00Z";
  const now = Date.parse(started_at) / 1000 + 754;
  const running = { state: "running", started_at, ended_at: null, duration: null, last_t: 700 } as const;
  expect([elapsed(running, now), silence(running, now)]).toEqual([754, 54]);
  const abandoned = { ...running, state: "abandoned", ended_at: "2026-01-01T00:01:00Z" } as const;
  expect([elapsed(abandoned, now), silence(abandoned, now)]).toEqual([60, null]);
  expect([clock(754), clock(3723), clock(-12), clock(null)]).toEqual(["12:34", "1:02:03", "−0:12", "–"]);
});

test("a debrief's Markdown becomes parts of text, and nothing else", () => {
  expect(blocksOf(`${DEBRIEF.debrief}\n## Next\n\n\`\`\`\nip  link\n\`\`\`\n<b>[words](http://x)`)).toEqual([
    {
      kind: "paragraph",
      lines: [
        [
          { as: "text", text: "ICMP " },
          { as: "em", text: "fragmentation needed" },
          { as: "text", text: " was dropped, so large segments vanished: goodput fell to " },
          { as: "strong", text: "0.0001" },
          { as: "text", text: " of healthy." },
        ],
      ],
    },
    { kind: "paragraph", lines: [[{ as: "text", text: "Look first at:" }]] },
    {
      kind: "list",
      lines: [
        [{ as: "code", text: "tracepath" }],
        [
          { as: "text", text: "the counters of " },
          { as: "code", text: "iptables -vL" },
        ],
      ],
    },
    { kind: "heading", lines: [[{ as: "text", text: "Next" }]] },
    { kind: "code", lines: [[{ as: "text", text: "ip  link" }]] },
    {
      kind: "paragraph",
      lines: [
        [
          { as: "text", text: "<b>" },
          { as: "text", text: "words" },
        ],
      ],
    },
  ]);
});
