/** Tiers × overlays: which runs are columns, which variants rows, what is in each cell; and what keeps columns apart. */
import type { GridCellRow } from "../../../contract/compare";
import { variantNames } from "../../lib/runs";
import { clean } from "../../lib/text";
import { isHost, variantKey } from "./ratios";

export interface Column {
  key: string;
  /** What of it differs from other columns, line by line. */
  title: string[];
  cells: Map<string, GridCellRow>;
}

export interface Tiers {
  columns: Column[];
  variants: { key: string; name: string }[];
  /** Why columns are not to be compared as they are; empty where they may be. */
  warnings: string[];
}

const ASPECTS = ["accelerator", "system", "machine", "origin", "suite", "scale"] as const;

const tier = ({ cloud, instance, profile }: GridCellRow): string =>
  clean([cloud, instance].filter((word) => word !== null).join(" ") || `profile ${profile}`, 24);

const collator = new Intl.Collator("en", { numeric: true });

/** As ratio to the host, or as absolute values, where the host is a row too, the first. */
export type TiersScale = "ratio" | "absolute";

export function tiersOf(all: readonly GridCellRow[], scale: TiersScale = "ratio"): Tiers {
  const rows = scale === "ratio" ? all.filter((row) => !isHost(row)) : all;
  const varied = ASPECTS.filter((aspect) => new Set(rows.map((row) => row[aspect])).size > 1);
  // Profiles that stand for the same tier are told apart by their own name.
  const ambiguous = new Set(rows.map(tier)).size < new Set(rows.map(({ profile }) => profile)).size;
  const columns = new Map<string, Column & { first: GridCellRow }>();
  for (const row of rows) {
    const key = JSON.stringify([...ASPECTS.map((aspect) => row[aspect]), row.profile]);
    const column = columns.get(key) ?? { key, first: row, cells: new Map(), title: titleOf(row, varied, ambiguous) };
    column.cells.set(variantKey(row), row);
    columns.set(key, column);
  }
  const order = (row: GridCellRow) => [
    row.accelerator,
    row.system ?? "",
    row.machine,
    row.origin,
    row.suite,
    String(row.scale),
    tier(row),
    row.profile,
  ];
  const sorted = [...columns.values()].sort((one, other) => {
    const [a, b] = [order(one.first), order(other.first)];
    return a.reduce((found, word, at) => found || collator.compare(word, b[at] as string), 0);
  });
  const variants = [...new Map(rows.map((row) => [variantKey(row), row]))].sort(
    ([one, a], [other, b]) =>
      Number(isHost(b)) - Number(isHost(a)) ||
      // What can be read across comes first.
      measured(sorted, other, scale) - measured(sorted, one, scale) ||
      collator.compare(a.overlay, b.overlay) ||
      collator.compare(a.mode ?? "", b.mode ?? "") ||
      a.encrypted - b.encrypted,
  );
  const names = variantNames(
    variants.map(([, row]) => row),
    34,
  );
  return {
    columns: sorted,
    variants: variants.map(([key], at) => ({ key, name: names[at] ?? "" })),
    warnings: warningsOf(rows),
  };
}

const measured = (columns: readonly Column[], variant: string, scale: TiersScale): number =>
  columns.filter(({ cells }) => (cells.get(variant)?.[scale === "ratio" ? "ratio" : "median"] ?? null) !== null).length;

function titleOf(row: GridCellRow, varied: readonly string[], ambiguous: boolean): string[] {
  const has = (aspect: (typeof ASPECTS)[number]): boolean => varied.includes(aspect);
  return [
    tier(row),
    ...(ambiguous ? [clean(row.profile, 20)] : []),
    ...(has("suite") || has("scale") ? [`${clean(row.suite, 18)}${row.scale === 1 ? "" : ` × ${row.scale}`}`] : []),
    ...(has("accelerator") ? [clean(row.accelerator, 20)] : []),
    ...(has("system") && row.system !== null ? [clean(row.system, 20)] : []),
    ...(has("machine") ? [clean(row.machine, 20)] : []),
    ...(has("origin") ? [clean(row.origin, 20)] : []),
  ];
}

/** What was measured differently: stands over the grid in plain words. */
function warningsOf(rows: readonly GridCellRow[]): string[] {
  const found = (aspect: (typeof ASPECTS)[number]): string[] => [
    ...new Set(rows.map((row) => clean(String(row[aspect] ?? "unknown"), 60))),
  ];
  const say = (aspect: (typeof ASPECTS)[number], words: string): string[] =>
    found(aspect).length > 1
      ? [`${words} (${found(aspect).slice(0, 4).join("; ")}${found(aspect).length > 4 ? "; …" : ""})`]
      : [];
  return [
    ...say("accelerator", "the nodes' CPUs ran differently"),
    ...say("system", "the nodes' systems differ"),
    ...say("machine", "the machines differ"),
    ...say("origin", "some are measured, some imported"),
    ...say("suite", "the suites differ"),
    ...say("scale", "the durations' scales differ"),
  ];
}
