/** What went wrong and is still to be said: only the person, or that file's success, takes it off the page. */
import { signal } from "@preact/signals";
import type { Answer, Problem } from "../../contract/answers";

/** path: of the file that it is about; empty where it is about none. */
export interface Failure {
  path: string;
  problem: Problem;
}

/** The newest first. */
export const failures = signal<Failure[]>([]);

/** Beyond this the oldest go: what is thrown again and again must not fill the memory. */
const MOST = 20;

const sameMatter = (one: Failure, other: Failure): boolean =>
  one.path === other.path && (one.path !== "" || one.problem.title === other.problem.title);

/** Said once of each matter, as it was the last time. */
export function fail(path: string, problem: Problem): void {
  const found: Failure = { path, problem };
  failures.value = [found, ...failures.value.filter((each) => !sameMatter(each, found))].slice(0, MOST);
}

export function dismiss(failure: Failure | undefined): void {
  failures.value = failures.value.filter((each) => each !== failure);
}

/** The file at this path could be opened after all. */
export function succeeded(path: string): void {
  if (path !== "") failures.value = failures.value.filter((each) => each.path !== path);
}

/** Of what the page asked of main beside files: an export, a copy. */
export function sayFailed(answer: Answer<unknown>): void {
  if (!answer.ok) fail("", answer.problem);
}
