import { beforeEach, expect, test } from "vitest";
import { problem } from "../../../contract/answers";
import { dismiss, fail, failures, sayFailed, succeeded } from "../failures";

const told = (): string[] => failures.value.map(({ path, problem }) => `${path} ${problem.title}`);
const say = (path: string, title: string): void => fail(path, problem("unreadable", title, "").problem);

beforeEach(() => {
  failures.value = [];
});

test("another file's success leaves what was said of one that is bad; its own takes it away", () => {
  say("/a/notes.txt", "no database");
  say("/a/cut.sqlite", "cut short");
  succeeded("/b/notes.txt");
  succeeded("");
  expect(told()).toEqual(["/a/cut.sqlite cut short", "/a/notes.txt no database"]);
  succeeded("/a/notes.txt");
  expect(told()).toEqual(["/a/cut.sqlite cut short"]);
});

test("of each matter the newest is said, once, and not without end", () => {
  say("/a/x.sqlite", "empty");
  say("", "Something could not be shown.");
  say("", "Something could not be shown.");
  say("/a/x.sqlite", "cut short");
  expect(told()).toEqual(["/a/x.sqlite cut short", " Something could not be shown."]);
  dismiss(failures.value[0]);
  expect(told()).toEqual([" Something could not be shown."]);
  for (let at = 0; at < 100; at++) say("", `${at}`);
  expect(failures.value).toHaveLength(20);
});

test("an answer that failed is said, one that did not is not", () => {
  sayFailed({ ok: true, value: null });
  expect(told()).toEqual([]);
  sayFailed(problem("unreadable", "/proc/nope/plot.svg could not be written.", ""));
  expect(told()).toEqual([" /proc/nope/plot.svg could not be written."]);
});
