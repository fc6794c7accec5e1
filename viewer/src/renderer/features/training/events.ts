/** What an event of an attempt says: its detail, checked, and its line in words. */
import type { AttemptEventRow } from "../../../contract/training";
import { counted } from "../../lib/counts";
import { finite, list, nullable, object, optional, parsed, record, type Shaped, text, yesNo } from "../../lib/json";

const TICKET = object({ ticket: text, may_touch: optional(text) });
const HINT = object({ text, cost: optional(finite) });
const FINDING = object({
  measure: text,
  role: text,
  healthy: nullable(finite),
  seen: nullable(finite),
  ratio: nullable(finite),
  at_least: optional(nullable(finite)),
  at_most: optional(nullable(finite)),
  passes: yesNo,
  reason: optional(nullable(text)),
});
const REFUSAL = object({ guard: text, reason: text });
const CHECK = object({ passes: yesNo, findings: optional(list(FINDING)), refusals: optional(list(REFUSAL)) });
const END = object({ debrief: optional(text), topics: optional(list(text)), references: optional(list(text)) });
/** changes: {node: what the step changed on it}. */
const STEP = object({ does: text, changes: optional(record(list(text))) });

export type Finding = Shaped<typeof FINDING>;
export type Refusal = Shaped<typeof REFUSAL>;
export type Check = Shaped<typeof CHECK>;

type Detail = Pick<AttemptEventRow, "detail">;
export const ticketOf = ({ detail }: Detail) => parsed(detail, TICKET);
export const hintOf = ({ detail }: Detail) => parsed(detail, HINT);
export const checkOf = ({ detail }: Detail) => parsed(detail, CHECK);
export const stepOf = ({ detail }: Detail) => parsed(detail, STEP);

const ENDS: readonly string[] = ["repaired", "given-up", "abandoned"];

/** What is told once an attempt has ended; null before, and where nothing is told. */
export function debriefOf(events: readonly AttemptEventRow[]): Shaped<typeof END> | null {
  const end = events.filter(({ kind }) => ENDS.includes(kind)).at(-1);
  const found = end ? parsed(end.detail, END) : null;
  return found?.debrief || found?.topics?.length ? found : null;
}

/** A line of the plots. short: beside it, empty for what happens just before the ticket. */
export interface Mark {
  t: number;
  short: string;
  words: string;
}

const WORDS: Record<string, string> = {
  baseline: "the service measured while all is well",
  injected: "the fault is in",
  shown: "the symptom can be felt",
  ticket: "the ticket",
  repaired: "repaired",
  "given-up": "given up",
  abandoned: "abandoned",
};
/** Within seconds of the ticket: their names would lie over each other. */
const UNNAMED: readonly string[] = ["baseline", "injected", "shown"];

/** Hints, checks and steps are numbered, as they are in the list. */
export function marksOf(events: readonly AttemptEventRow[]): Mark[] {
  const counts = new Map<string, number>();
  return events.map((event) => {
    const number = (counts.get(event.kind) ?? 0) + 1;
    counts.set(event.kind, number);
    const words = eventWords(event, number);
    return { t: event.t, short: UNNAMED.includes(event.kind) ? "" : shortOf(event.kind, number), words };
  });
}

const shortOf = (kind: string, number: number): string =>
  ({ hint: `H${number}`, check: `C${number}`, "solved-step": `S${number}` })[kind] ?? kind;

function eventWords(event: AttemptEventRow, number: number): string {
  if (event.kind === "hint") {
    const cost = hintOf(event)?.cost;
    return `hint ${number}${cost === undefined ? "" : `, ${counted(cost, "point")}`}`;
  }
  if (event.kind === "check") {
    const check = checkOf(event);
    return `check ${number}: ${check === null ? "not told" : check.passes ? "the service is back" : refusedWords(check)}`;
  }
  if (event.kind === "solved-step") return `step ${number} of the solution`;
  return WORDS[event.kind] ?? event.kind;
}

function refusedWords({ findings = [], refusals = [] }: Check): string {
  const failed = findings.filter(({ passes }) => !passes).length;
  const parts = [
    failed ? `${counted(failed, "probe")} not as before` : "",
    refusals.length ? `refused by ${counted(refusals.length, "guard")}` : "",
  ].filter(Boolean);
  return parts.join(", ") || "not repaired";
}
