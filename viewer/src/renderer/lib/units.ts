/** From base units to what people read. The only place that formats values. */
import type { Settings } from "../../contract/settings";

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

/** What was chosen in Settings. */
export type Units = Pick<Settings, "rateUnit" | "timeUnit">;

/** One scale for all values that stand together. unit: a base unit of the database; throws for one that is unknown. */
export function scaleOf(unit: string, values: readonly (number | null)[], chosen: Units): Scale {
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

/** Four significant digits, of a value however small; – where nothing is known. */
export function number(value: number | null, scale: Scale = { unit: "", factor: 1 }): string {
  if (value === null || !Number.isFinite(value)) return "–";
  const scaled = value / scale.factor;
  return Math.abs(scaled) >= 1e4 ? scaled.toFixed(0) : String(Number(scaled.toPrecision(4)));
}

export const withUnit = (value: number | null, scale: Scale): string =>
  value === null ? "–" : `${number(value, scale)}${scale.unit && scale.unit !== "ratio" ? ` ${scale.unit}` : ""}`;

/** Three digits that matter; two of what four places would show as nothing, or nearly. */
export function ratio(value: number | null): string {
  if (value === null) return "–";
  if (value === 0) return "0";
  const said =
    value < 0.001
      ? String(Number(value.toPrecision(2)))
      : value.toFixed(value < 0.1 ? 4 : value < 2 ? 3 : value < 10 ? 2 : 1);
  return said.replace(/^0\./, ".");
}

/** 2026-11-21 23:37 UTC */
export const time = (iso: string | null): string =>
  iso === null ? "–" : `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;

export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  // Rounded before it is divided: no 60 s, and no 60 min.
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
