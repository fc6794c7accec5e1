/** Three ways to look at loss. Zero is on each of them: a plain logarithm would hide it. */
export type LossScale = "whole" | "zoomed" | "small";

/** Below it the third scale is linear, and logarithmic above: so that zero and 0.1 % are both to be seen. */
const KNEE = 1e-4;

const TICKS = [0, 1e-4, 1e-3, 1e-2, 0.05, 0.2, 1];

const bent = (loss: number): number => Math.log10(1 + loss / KNEE);

/** Where a loss stands on the axis. Other metrics stay what they are. */
export const lossShown = (
  { metric, normalised, lossScale }: { metric: string; normalised: boolean; lossScale: LossScale },
  value: number,
): number => (metric === "loss" && !normalised && lossScale === "small" ? bent(value) : value);

export function lossAxis(scale: LossScale, values: readonly (number | null)[]): Record<string, unknown> {
  if (scale === "small") {
    return {
      range: [-0.15, bent(1) + 0.15],
      tickvals: TICKS.map(bent),
      ticktext: TICKS.map((share) => `${Number((share * 100).toPrecision(3))} %`),
      zeroline: true,
    };
  }
  const most = scale === "whole" ? 1 : Math.max(0.001, ...values.map((value) => value ?? 0));
  return { range: [-0.03 * most, 1.05 * most], tickformat: ".3~%", zeroline: true };
}
