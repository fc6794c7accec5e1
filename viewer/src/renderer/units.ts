/** From base units to what people read. The only place that formats values. */
import type { Settings } from "../contract/settings";

export interface Scale {
  unit: string;
  /** Base units in one of them. */
  factor: number;
}

const RATES: Record<string, number> = {
  "Gbit/s": 1e9,
  "Mbit/s": 1e6,
  "kbit/s": 1e3,
  "bit/s": 1,
  "MB/s": 8e6,
  "MiB/s": 8 * 2 ** 20,
};
const TIMES: Record<string, number> = { s: 1, ms: 1e-3, µs: 1e-6 };
const BYTES: Record<string, number> = { GB: 1e9, MB: 1e6, kB: 1e3, B: 1 };

/** The largest unit in which the largest value is at least 1. */
const fitting = (units: Record<string, number>, names: string[], largest: number): Scale => {
  const unit = names.find((name) => largest >= (units[name] as number)) ?? (names[names.length - 1] as string);
  return { unit, factor: units[unit] as number };
};

/** One scale for all values that stand together. unit: a base unit of the database; throws for one that is unknown. */
export function scaleOf(
  unit: string,
  values: readonly (number | null)[],
  chosen: Pick<Settings, "rateUnit" | "timeUnit">,
): Scale {
  const largest = values.reduce<number>(
    (most, value) => (value !== null && Math.abs(value) > most ? Math.abs(value) : most),
    0,
  );
  switch (unit) {
    case "bit/s":
      return chosen.rateUnit === "auto"
        ? fitting(RATES, ["Gbit/s", "Mbit/s", "kbit/s", "bit/s"], largest)
        : { unit: chosen.rateUnit, factor: RATES[chosen.rateUnit] as number };
    case "s":
      return chosen.timeUnit === "auto"
        ? fitting(TIMES, ["s", "ms", "µs"], largest)
        : { unit: chosen.timeUnit, factor: TIMES[chosen.timeUnit] as number };
    case "bytes":
      return fitting(BYTES, ["GB", "MB", "kB", "B"], largest);
    case "ratio":
      return { unit: "ratio", factor: 1 };
    case "1/s":
      return { unit: "per second", factor: 1 };
    case "1":
      return { unit: "", factor: 1 };
    default:
      throw new Error(`unknown unit: ${unit}`);
  }
}

/** Four significant digits; – where nothing is known. */
export function number(value: number | null, scale: Scale = { unit: "", factor: 1 }): string {
  if (value === null || !Number.isFinite(value)) return "–";
  const scaled = value / scale.factor;
  if (scaled === 0) return "0";
  const digits = Math.abs(scaled) >= 1e4 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(scaled))));
  return scaled
    .toFixed(Math.min(digits, 6))
    .replace(/^(-?\d+\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

export const withUnit = (value: number | null, scale: Scale): string =>
  value === null ? "–" : `${number(value, scale)}${scale.unit && scale.unit !== "ratio" ? ` ${scale.unit}` : ""}`;

/** Three digits that matter. */
export const ratio = (value: number | null): string =>
  value === null ? "–" : value.toFixed(value < 0.1 ? 4 : value < 2 ? 3 : value < 10 ? 2 : 1).replace(/^0\./, ".");

/** 2026-11-21 23:37 UTC */
export const time = (iso: string | null): string =>
  iso === null ? "–" : `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;

export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${Math.round(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
