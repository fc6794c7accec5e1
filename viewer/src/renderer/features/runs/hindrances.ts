/** Whether one run may be held against another, and what else is another in it: the rule of overlaylab's results_compare. */
import type { RunRow } from "../../../contract/run";
import type { RunValueRow } from "../../../contract/runs";
import { finite, list, nullable, object, optional, parsed, record, text } from "../../lib/json";
import { variantWords } from "../../lib/runs";
import { type Rules, variantKey } from "./compare";

/** What is the same for all practical purposes, where the two runs were given different margins. */
const MARGIN = 0.02;

const RULES = object({ margin: optional(finite), looks: optional(nullable(list(finite))) });

export const marginOf = (run: Pick<RunRow, "arguments">): number => parsed(run.arguments, RULES)?.margin ?? MARGIN;
const sharesOf = (run: Pick<RunRow, "arguments">): number =>
  Math.max(1, parsed(run.arguments, RULES)?.looks?.length ?? 0);

export function rulesOf(first: Pick<RunRow, "arguments">, second: Pick<RunRow, "arguments">): Rules {
  const margin = marginOf(first);
  return { margin: margin === marginOf(second) ? margin : MARGIN, shares: sharesOf(first) * sharesOf(second) };
}

const another = (first: RunRow, second: RunRow, names: readonly (keyof RunRow)[]): string[] =>
  names
    .filter((name) => first[name] !== second[name])
    .map((name) => `another ${name}: ${first[name] ?? "unknown"}, then ${second[name] ?? "unknown"}`);

/** What forbids it: a difference between the two would be that, not the overlay's. */
export const hindrances = (first: RunRow, second: RunRow): string[] => [
  ...another(first, second, ["accelerator", "machine", "profile", "provider", "origin"]),
  ...(first.profile === second.profile && first.profile_digest !== second.profile_digest
    ? [`the profile ${first.profile} says something else since`]
    : []),
];

/** What else differs: often just what is to be compared. */
export function changed(first: RunRow, second: RunRow): string[] {
  const roles = [first, second].map((run) => parsed(run.role_digests, record(text)) ?? {}) as [
    Record<string, string>,
    Record<string, string>,
  ];
  return [
    ...another(first, second, ["suite", "scale", "system", "image", "cluster"]),
    ...(first.suite === second.suite && first.suite_digest !== second.suite_digest
      ? [`the suite ${first.suite} has changed`]
      : []),
    ...Object.entries(roles[1])
      .filter(([overlay, digest]) => Object.hasOwn(roles[0], overlay) && roles[0][overlay] !== digest)
      .map(([overlay]) => `the role of ${overlay} has changed`),
  ];
}

/** Which overlays had another MTU, by their trials; of those that both runs measured. */
export function changedMtus(first: readonly RunValueRow[], second: readonly RunValueRow[]): string[] {
  const of = (rows: readonly RunValueRow[], key: string): string =>
    [
      ...new Set(
        rows.filter((row) => variantKey(row) === key && row.overlay_mtu !== null).map((row) => row.overlay_mtu),
      ),
    ].join(" or ");
  return [...new Map(first.map((row) => [variantKey(row), row]))].flatMap(([key, row]) => {
    const [one, other] = [of(first, key), of(second, key)];
    return one && other && one !== other ? [`another MTU of ${variantWords(row)}: ${one}, then ${other}`] : [];
  });
}
