/** An attempt in words: its state, its clock, what it was on. */
import { ACCELERATORS } from "../../../contract/terms";
import type { AttemptRow } from "../../../contract/training";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";

/** s. The prober's slowest pass takes half of it: a drill that stores nothing for so long has nobody who watches. */
export const SILENT_S = 60;

/** 4:07, or 1:02:03; a minus before the ticket. */
export function clock(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  const whole = Math.round(Math.abs(seconds));
  const two = (part: number): string => String(part).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const shown = `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
  return seconds < 0 && whole > 0 ? `−${shown}` : shown;
}

/** s from the ticket to its end, or until now. now: s since 1970. */
export function elapsed({ state, started_at, ended_at, duration }: Timed, now: number): number | null {
  if (duration !== null) return duration;
  const from = Date.parse(started_at) / 1000;
  const to = state === "running" ? now : ended_at === null ? NaN : Date.parse(ended_at) / 1000;
  return Number.isFinite(to - from) ? Math.max(0, to - from) : null;
}
type Timed = Pick<AttemptRow, "state" | "started_at" | "ended_at" | "duration">;

/** s since anything was measured in a running attempt; null where that says nothing. */
export const silence = (attempt: Timed & Pick<AttemptRow, "last_t">, now: number): number | null => {
  const since = attempt.state === "running" ? elapsed(attempt, now) : null;
  return since === null ? null : Math.max(0, since - Math.max(0, attempt.last_t ?? 0));
};

const STATES: Record<AttemptRow["state"], string> = {
  running: "at hand",
  repaired: "repaired",
  "given-up": "given up",
  abandoned: "abandoned",
};
export const stateWords = (state: string): string => STATES[state as AttemptRow["state"]] ?? clean(state, 40);

export const placeWords = (attempt: AttemptRow): string =>
  [
    variantWords(attempt),
    `cluster ${clean(attempt.cluster, 40)}`,
    ...(attempt.profile === "none" ? [] : [`profile ${clean(attempt.profile, 40)}`]),
    ACCELERATORS[attempt.accelerator] ?? clean(attempt.accelerator, 40),
  ].join(" · ");
