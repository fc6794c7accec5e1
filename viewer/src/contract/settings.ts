export const THEMES = ["system", "light", "dark"] as const;
export const RATE_UNITS = ["auto", "Gbit/s", "Mbit/s", "kbit/s", "MB/s", "MiB/s"] as const;
export const TIME_UNITS = ["auto", "s", "ms", "µs"] as const;

/** What survives a restart. Unknown or broken values fall back to the defaults. */
export interface Settings {
  theme: (typeof THEMES)[number];
  rateUnit: (typeof RATE_UNITS)[number];
  timeUnit: (typeof TIME_UNITS)[number];
  view: string;
  /** By view: whatever that view keeps of its choices, as JSON. */
  filters: Record<string, unknown>;
  window: { width: number; height: number; x?: number; y?: number; maximised: boolean };
}

export const DEFAULTS: Settings = {
  theme: "system",
  rateUnit: "auto",
  timeUnit: "auto",
  view: "overview",
  filters: {},
  window: { width: 1280, height: 800, maximised: false },
};
