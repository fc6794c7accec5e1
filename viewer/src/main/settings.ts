/** Settings in one JSON file of the user's folder. A broken file is put aside and the defaults are taken. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DEFAULTS, RATE_UNITS, type Settings, THEMES, TIME_UNITS } from "../contract/settings";

/** Only what has the right type counts; a setting of another version is left out. */
export function checked(found: unknown): Settings {
  if (typeof found !== "object" || found === null) return DEFAULTS;
  const given = found as Record<string, unknown>;
  const one = <Value extends string>(name: keyof Settings, of: readonly Value[]): Value =>
    of.includes(given[name] as Value) ? (given[name] as Value) : (DEFAULTS[name] as Value);
  const window = (typeof given.window === "object" && given.window !== null ? given.window : {}) as Record<
    string,
    unknown
  >;
  const size = (name: "width" | "height", least: number): number =>
    typeof window[name] === "number" && window[name] >= least && window[name] <= 10_000
      ? window[name]
      : DEFAULTS.window[name];
  const place = (name: "x" | "y") =>
    typeof window[name] === "number" && Number.isFinite(window[name]) ? { [name]: window[name] } : {};
  return {
    theme: one("theme", THEMES),
    rateUnit: one("rateUnit", RATE_UNITS),
    timeUnit: one("timeUnit", TIME_UNITS),
    view: typeof given.view === "string" ? given.view : DEFAULTS.view,
    filters:
      typeof given.filters === "object" && given.filters !== null ? (given.filters as Record<string, unknown>) : {},
    window: {
      width: size("width", 640),
      height: size("height", 480),
      maximised: window.maximised === true,
      ...place("x"),
      ...place("y"),
    },
  };
}

export class SettingsFile {
  private now: Settings;

  constructor(private readonly path: string) {
    this.now = this.read();
  }

  get value(): Settings {
    return this.now;
  }

  /** Written at once, through a new file: a crash leaves the old one whole. */
  change(change: Partial<Settings>): Settings {
    this.now = checked({ ...this.now, ...change });
    try {
      mkdirSync(dirname(this.path), { recursive: true });
      writeFileSync(`${this.path}.new`, JSON.stringify(this.now, null, 2));
      renameSync(`${this.path}.new`, this.path);
    } catch (error) {
      console.error(`settings were not kept: ${String(error)}`);
    }
    return this.now;
  }

  private read(): Settings {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch {
      return DEFAULTS;
    }
    try {
      return checked(JSON.parse(text));
    } catch {
      renameSync(this.path, `${this.path}.broken`);
      return DEFAULTS;
    }
  }
}
