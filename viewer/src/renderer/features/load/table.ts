/** What the plots against offered load show, as values and in words. */
import type { LoadTrial } from "../../../contract/load";
import { METRICS } from "../../../contract/terms";
import type { Figure } from "../../charts/figure";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { number, scaleOf, type Units, withUnit } from "../../lib/units";
import type { LossScale } from "./loss-axis";
import { againstHost, type Load, type LoadMetric, type LoadSeries, percent } from "./points";

export interface LoadOptions {
  metric: LoadMetric;
  normalised: boolean;
  /** Of delivered goodput, absolute. */
  rateAxis: "log" | "linear";
  lossScale: LossScale;
  units: Units;
}

export const NAMES: Record<LoadMetric, string> = { goodput: "Delivered goodput", loss: "Loss", jitter: "Jitter" };

/** What of a trial's values stands on the y axis, in base units. */
export const shownOf = (load: Load, { metric, normalised }: LoadOptions, trial: LoadTrial): number | null =>
  normalised ? againstHost(load, metric, trial) : trial[metric];

export function loadGrid(load: Load, drawn: readonly LoadSeries[], options: LoadOptions): Figure["grid"] {
  const { metric, normalised } = options;
  const rows: Cell[][] = [];
  const points: unknown[] = [];
  for (const { variant, trials, medians } of drawn) {
    for (const trial of trials) {
      const { block, asked, datagram, offered } = trial;
      rows.push([variant.name, block, asked, datagram, offered, shownOf(load, options, trial), null, null]);
      points.push(trial.trial_id);
    }
    if (normalised && metric === "loss") continue;
    for (const step of load.steps) {
      const row = medians.get(step)?.[metric];
      if (!row) continue;
      rows.push([
        variant.name,
        `median of ${counted(normalised ? row.ratio_blocks : row.blocks, "block")}`,
        load.against === "load" ? step : null,
        load.against === "datagram" ? step : null,
        medians.get(step)?.offered?.median ?? null,
        normalised ? row.ratio : row.median,
        normalised ? row.interval_low : null,
        normalised ? row.interval_high : null,
      ]);
      points.push(null);
    }
  }
  const unit = normalised ? (metric === "loss" ? "ratio, less the host's" : "ratio to host") : METRICS[metric].unit;
  return {
    columns: [
      { name: "variant" },
      { name: "block" },
      { name: "asked", unit: "bit/s" },
      { name: "datagram", unit: "bytes" },
      { name: "offered", unit: "bit/s" },
      { name: NAMES[metric].toLowerCase(), unit },
      { name: "interval from" },
      { name: "interval to" },
    ],
    rows,
    points,
  };
}

/** Each variant at the last step that it has a median for. */
export function loadSummary(
  load: Load,
  drawn: readonly LoadSeries[],
  { metric, normalised, units }: LoadOptions,
): string {
  const words = drawn.flatMap(({ variant, medians }) => {
    const [step, last] = [...medians].sort(([a], [b]) => b - a).find(([, at]) => at[metric] !== undefined) ?? [];
    const value = (normalised ? last?.[metric]?.ratio : last?.[metric]?.median) ?? null;
    if (step === undefined || value === null) return [];
    const said =
      metric === "loss"
        ? percent(value)
        : normalised
          ? number(value)
          : withUnit(value, scaleOf(METRICS[metric].unit, [value], units));
    const at = load.against === "load" ? `${withUnit(step, scaleOf("bit/s", [step], units))} asked` : `${step} bytes`;
    return [`${variant.name} ${said} at ${at}`];
  });
  return words.length
    ? `Median ${NAMES[metric].toLowerCase()}: ${words.join("; ")}.`
    : "Single values; no medians, or none yet.";
}
