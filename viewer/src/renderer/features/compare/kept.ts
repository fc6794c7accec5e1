/** The choices of this view that survive a restart; what a broken settings file holds falls back. */

import { filterOf, keepFilter } from "../../state/state";
import type { AxisChoice } from "./axis-choice";

export interface Kept {
  part: "run" | "tiers";
  scale: "ratio" | "absolute";
  axis: AxisChoice;
  metric: string;
  /** A table of that metric: its key as JSON. */
  table: string;
  tiersTable: string;
  /** null: all. */
  placement: string | null;
  encrypted: "yes" | "no" | null;
  /** Overlays that are not drawn. */
  hidden: string[];
}

const DEFAULTS: Kept = {
  part: "run",
  scale: "ratio",
  axis: "auto",
  metric: "",
  table: "",
  tiersTable: "",
  placement: null,
  encrypted: null,
  hidden: [],
};

export const AXES = [
  { value: "auto", text: "automatic" },
  { value: "linear", text: "linear" },
  { value: "log", text: "logarithmic" },
];
export const ENCRYPTED = [
  { value: "yes", text: "encrypted only" },
  { value: "no", text: "not encrypted" },
];

export function kept(): Kept {
  const found = filterOf("compare", DEFAULTS);
  return {
    ...found,
    scale: found.scale === "absolute" ? "absolute" : "ratio",
    encrypted: found.encrypted === "yes" || found.encrypted === "no" ? found.encrypted : null,
    hidden: Array.isArray(found.hidden) ? found.hidden.filter((name) => typeof name === "string") : [],
  };
}

export const keep = (change: Partial<Kept>): void => keepFilter("compare", { ...kept(), ...change });

/** Whether a choice between encrypted and not leaves something either way. */
export const bothKinds = (rows: readonly { encrypted: number }[]): boolean =>
  rows.some(({ encrypted }) => encrypted) && rows.some(({ encrypted }) => !encrypted);

/** Which of these variants are drawn. */
export const isShown = (
  row: { overlay: string; encrypted: number },
  { hidden, encrypted }: Kept,
  both: boolean,
): boolean =>
  !hidden.includes(row.overlay) && (!both || encrypted === null || Boolean(row.encrypted) === (encrypted === "yes"));
