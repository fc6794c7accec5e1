/** What a run's row says, in words. Pure: tested without a window. */
import type { RunRow, VerdictRow } from "../contract/overview";
import type { Settings } from "../contract/settings";
import { distinctNames, plainName } from "../contract/text";
import { clean } from "./charts/figure";
import { fields, list, nullable, object, parsed, text, yesNo } from "./json";
import { number, ratio, scaleOf, withUnit } from "./units";

/** Longer than an overlay takes to converge on emulated CPUs: a run that stores nothing for so long was likely killed. */
export const SILENT_S = 15 * 60;

export interface Variant {
  overlay: string;
  mode: string | null;
  encrypted: boolean | number;
}

const words = ({ overlay, mode, encrypted }: Variant, most: number): string =>
  [
    plainName(overlay, most),
    mode === null ? null : plainName(mode, most),
    encrypted && !/encrypted/.test(mode ?? "") ? "encrypted" : null,
  ]
    .filter(Boolean)
    .join(" ");

/** weave fastdp encrypted; many modes that encrypt say so in their name already. */
export const variantWords = (variant: Variant): string => words(variant, 40);

/** Names of variants that stand together, no two alike. */
export const variantNames = (variants: readonly Variant[], most: number): string[] =>
  distinctNames(
    variants.map((variant) => words(variant, 1000)),
    most,
  );

const VARIANTS = list(object({ overlay: text, mode: nullable(text), encrypted: yesNo }));

export const variantsOf = (run: Pick<RunRow, "variants">): Variant[] => parsed(run.variants, VARIANTS) ?? [];

/** Up to three by name, else how many. */
export function variantsInShort(run: Pick<RunRow, "variants">): string {
  const all = variantsOf(run);
  const names = [...new Set(all.map(({ overlay }) => overlay))];
  if (all.length === 0) return "–";
  if (all.length <= 3) return all.map(variantWords).join(", ");
  return names.length <= 3
    ? `${names.map((name) => clean(name, 40)).join(", ")}: ${all.length} modes`
    : `${all.length} modes of ${names.length} overlays`;
}

/** The tier that the profile stands for; null where it stands for none. */
export const tierWords = (run: Pick<RunRow, "cloud" | "instance">): string | null =>
  [run.cloud, run.instance].filter(Boolean).join(" ") || null;

/** Several tiers that were asked for at once: which of them this is. */
export function groupOf(run: Pick<RunRow, "arguments" | "profile">): { id: string; at: number; of: number } | null {
  const { group, profiles } = fields(run.arguments);
  if (typeof group !== "string") return null;
  const all = Array.isArray(profiles) ? profiles : [];
  return { id: group, at: all.indexOf(run.profile) + 1, of: all.length };
}

const seconds = (iso: string | null): number | null => {
  const found = iso === null ? NaN : Date.parse(iso) / 1000;
  return Number.isFinite(found) ? found : null;
};

/** s since something was stored; null where that says nothing. now: s since 1970. */
export function silence(run: Pick<RunRow, "state" | "written_at">, now: number): number | null {
  const last = run.state === "running" ? seconds(run.written_at) : null;
  return last === null ? null : Math.max(0, now - last);
}

/** Nobody can tell a killed run from a slow one by its row alone. */
export const mayBeKilled = (run: Pick<RunRow, "state" | "written_at">, now: number): boolean =>
  (silence(run, now) ?? 0) > SILENT_S;

export const stateWords = (run: Pick<RunRow, "state" | "origin" | "written_at">, now: number): string => {
  if (run.origin === "imported") return "imported";
  return mayBeKilled(run, now) ? "running or killed" : run.state;
};

/** What to do about a run that is not done; null where there is nothing to do. */
export function stateAdvice(run: Pick<RunRow, "state" | "written_at" | "origin">, now: number): string | null {
  if (run.origin === "imported") return "Read from another program's file; nothing of it was measured here.";
  if (mayBeKilled(run, now)) return "Running, or killed while it ran; ./task lab:resume carries it on.";
  if (run.state === "interrupted") return "Interrupted; ./task lab:resume carries it on.";
  if (run.state === "planned") return "Planned; nothing was measured yet.";
  if (run.state === "failed") return "Failed: it ended before its plan did.";
  return null;
}

/** Blocks after which a run that was to reach a precision had it; null for one that took all that were planned, or had none to reach. */
export function enoughAfter(
  run: Pick<RunRow, "state" | "arguments" | "blocks" | "trials_planned" | "trials_done">,
): number | null {
  const { precision } = fields(run.arguments);
  if (run.state !== "done" || typeof precision !== "number" || run.trials_done >= run.trials_planned) return null;
  // Every block has the same trials.
  return Math.round((run.blocks * run.trials_done) / run.trials_planned);
}

export const enoughWords = (after: number, { blocks }: Pick<RunRow, "blocks">): string =>
  `enough after ${after} of at most ${blocks} blocks`;

/** s from its first start to its end, or until now; null before it ran. Breaks of a resumed run are in it. */
export function elapsed(
  run: Pick<RunRow, "state" | "started_at" | "ended_at" | "written_at">,
  now: number,
): number | null {
  const from = seconds(run.started_at);
  const to = run.state === "running" ? (mayBeKilled(run, now) ? seconds(run.written_at) : now) : seconds(run.ended_at);
  return from === null || to === null ? null : Math.max(0, to - from);
}

/** One sentence on one overlay and mode: its verdict, and what that rests on. */
export function verdictSentence(row: VerdictRow, chosen: Pick<Settings, "rateUnit" | "timeUnit">): string {
  const scale = scaleOf(row.unit, [row.median], chosen);
  const median = row.median === null ? "no value" : withUnit(row.median, scale);
  const blocks = (n: number): string => `${n} ${n === 1 ? "block" : "blocks"}`;
  if (row.overlay === "host") return `${median}, median of ${blocks(row.blocks)}: what the others are compared with.`;
  const left = row.left_out
    ? ` ${blocks(row.left_out)} without a value of the host ${row.left_out === 1 ? "is" : "are"} left out.`
    : "";
  if (row.ratio === null) return `${median}, median of ${blocks(row.blocks)}; nothing to compare with.${left}`;
  const same = row.ratio_same_step ? "within the tool's step of the host" : `${ratio(row.ratio)} of the host`;
  const interval =
    row.interval_low !== null && row.interval_high !== null && row.coverage !== null
      ? ` (between ${ratio(row.interval_low)} and ${ratio(row.interval_high)}, with ${number(row.coverage * 100)} % confidence)`
      : row.ratio_blocks > 1
        ? ` (blocks: ${ratio(row.ratio_low)} to ${ratio(row.ratio_high)})`
        : "";
  const facts = `${median}, ${same}${interval}, ${blocks(row.ratio_blocks)}.${left}`;
  if (row.verdict_words !== null) {
    const alone = row.verdict_alone_words;
    const other =
      alone !== null && alone !== row.verdict_words ? ` (${clean(alone)}, had nothing else been compared)` : "";
    return `${clean(row.verdict_words)}${other}: ${facts}`;
  }
  return `no verdict${row.provisional ? " before the run ends" : row.ratio_blocks < 6 ? " below six blocks" : ""}: ${facts}`;
}
