/** Variants of a run in plots: each has its place in the run, which is its colour and symbol in every one. */
import type { RunRow } from "../../contract/run";
import { plainName } from "../../contract/text";
import { object, optional, parsed, record, text } from "./json";
import { type Variant, variantNames, variantsOf, variantWords } from "./runs";

export interface Placed {
  key: string;
  /** As it may stand on the page, not yet for Plotly. */
  name: string;
  at: number;
  isHost: boolean;
}

export const variantKey = ({ overlay, mode, encrypted }: Variant): string =>
  JSON.stringify([overlay, mode, Boolean(encrypted)]);

/** Letters of a name. */
const NAME = 60;

export const variantName = (variant: Variant): string => plainName(variantWords(variant), NAME);

/** In the order asked for; those that only the rows have come last. No two have the same name. */
export function placedVariants(run: Pick<RunRow, "variants">, rows: readonly Variant[]): Map<string, Placed> {
  const found = new Map<string, Variant>();
  for (const each of [...variantsOf(run), ...rows]) {
    const key = variantKey(each);
    if (!found.has(key)) found.set(key, each);
  }
  const names = variantNames([...found.values()], NAME);
  return new Map(
    [...found].map(([key, { overlay, mode }], at) => [
      key,
      { key, name: names[at] ?? "", at, isHost: overlay === "host" && mode === null },
    ]),
  );
}

const NODES = record(object({ zone: optional(text) }));

/** Zones by node, of those that have one. */
export const zonesOf = ({ nodes }: Pick<RunRow, "nodes">): Map<string, string> =>
  new Map(
    Object.entries(parsed(nodes, NODES) ?? {}).flatMap(([node, { zone }]) => (zone ? [[node, zone] as const] : [])),
  );
