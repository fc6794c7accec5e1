/** What a run's row says, in words. Pure: tested without a window. */

import type { RunRow } from "../../contract/run";
import { distinctNames, plainName } from "../../contract/text";
import { fields, list, nullable, object, parsed, text, yesNo } from "./json";

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

/** The tier that the profile stands for; null where it stands for none. */
export const tierWords = (run: Pick<RunRow, "cloud" | "instance">): string | null =>
  [run.cloud, run.instance].filter(Boolean).join(" ") || null;

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
