/** What a process answers: a value, or a problem in words that a person can act on. Never an exception across a border. */
export type Answer<Value> = { ok: true; value: Value } | { ok: false; problem: Problem };

/**
 * code: for tests and for choosing what to offer. title: what is wrong, in a line. advice: what to do next.
 * detail: the other side's own words, for whoever looks closer.
 */
export interface Problem {
  code: ProblemCode;
  title: string;
  advice: string;
  detail?: string;
}

export type ProblemCode =
  | "absent"
  | "unreadable"
  | "empty"
  | "not-a-database"
  | "not-ours"
  | "older"
  | "newer"
  | "altered"
  | "damaged"
  | "locked"
  | "too-slow"
  | "too-large"
  | "replaced"
  | "gone"
  | "refused"
  | "unexpected";

export const value = <Value>(found: Value): Answer<Value> => ({ ok: true, value: found });
export const problem = (
  code: ProblemCode,
  title: string,
  advice: string,
  detail?: string,
): { ok: false; problem: Problem } => ({
  ok: false,
  problem: { code, title, advice, ...(detail === undefined ? {} : { detail }) },
});
