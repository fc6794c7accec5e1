/** Overlays and modes that both runs were asked for, in the first's order. */
import type { RunRow } from "../../../contract/run";
import { variantsOf } from "../../lib/runs";
import { isHost, type Variant, variantKey } from "./compare";

const askedFor = (run: Pick<RunRow, "variants">): Variant[] =>
  variantsOf(run).map(({ overlay, mode, encrypted }) => ({ overlay, mode, encrypted: encrypted ? 1 : 0 }));

export function bothOf([first, second]: readonly [Pick<RunRow, "variants">, Pick<RunRow, "variants">]): Variant[] {
  const other = new Set(askedFor(second).map(variantKey));
  return askedFor(first).filter((variant) => other.has(variantKey(variant)));
}

/** Every run has a host: what runs are held against each other for is what they have beside it. */
export const overlaysOf = (variants: readonly Variant[]): Variant[] => variants.filter((variant) => !isHost(variant));
