/**
 * Electron's security checklist, 17, carried on: what comes over a channel is of the type and size that the contract says, or
 * it is refused. TypeScript's types are a promise of our own page only. A channel without a check does not compile.
 */
import type { Channel, RequestParameters } from "../../contract/channels";

type Check<Parameters> = (given: unknown) => given is Parameters;
export type Checks = { [Name in Channel]: Check<RequestParameters<Name>> };

const LONGEST_PATH = 4096;
/** A page of all views holds Plotly and every figure. */
const LARGEST_EXPORT = 200e6;
const LARGEST_SETTINGS = 256e3;

const text = (given: unknown, most: number): given is string => typeof given === "string" && given.length <= most;

/** Exactly an object with these properties, none of them missing, nothing inherited, and no other. */
function fields(given: unknown, checks: Record<string, (value: unknown) => boolean>, optional: string[] = []): boolean {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return false;
  const found = given as Record<string, unknown>;
  return (
    Object.keys(found).every((name) => Object.hasOwn(checks, name)) &&
    Object.entries(checks).every(([name, check]) =>
      Object.hasOwn(found, name) ? check(found[name]) : optional.includes(name),
    )
  );
}

const path = (given: unknown): boolean => text(given, LONGEST_PATH) && given !== "" && !given.includes("\0");
const fileId = (given: unknown): boolean => text(given, 20) && /^f\d+$/.test(given);
const scalar = (given: unknown): boolean =>
  given === null || text(given, 100_000) || (typeof given === "number" && Number.isFinite(given));
const nothing = (given: unknown): given is null => given === null || given === undefined;
const oneFile = (given: unknown): given is { id: string } => fields(given, { id: fileId });
const ownName = (name: string): boolean => /^[A-Za-z_]\w{0,40}$/.test(name);

function queryParameters(given: unknown): boolean {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return false;
  const entries = Object.entries(given);
  return entries.length <= 32 && entries.every(([name, value]) => ownName(name) && scalar(value));
}

/** Settings are checked one by one where they are kept; here only that they are few. The window's place is main's own. */
const settings = (given: unknown): boolean => {
  if (typeof given !== "object" || given === null || Array.isArray(given) || "window" in given) return false;
  try {
    return JSON.stringify(given).length <= LARGEST_SETTINGS;
  } catch {
    return false;
  }
};

export const CHECKS: Checks = {
  "file:open": (given): given is { path?: string } => fields(given, { path }, ["path"]),
  "file:drop": (given): given is { path: string } => fields(given, { path }),
  "file:close": oneFile,
  "file:reopen": oneFile,
  "file:list": nothing,
  "file:recent": nothing,
  "file:demo": nothing,
  query: (given): given is RequestParameters<"query"> =>
    fields(given, {
      file: fileId,
      name: (name) => text(name, 60) && /^[a-z][\w-]*$/i.test(name),
      parameters: queryParameters,
    }),
  "settings:read": nothing,
  "settings:write": (given): given is RequestParameters<"settings:write"> => settings(given),
  "export:save": (given): given is RequestParameters<"export:save"> =>
    fields(given, {
      suggestedName: (name) => text(name, 200) && /^[^./\\\0-\x1f][^/\\\0-\x1f]*$/.test(name),
      kind: (kind) => ["svg", "png", "csv", "html"].includes(kind as string),
      content: (content) => text(content, LARGEST_EXPORT),
    }),
  "text:copy": (given): given is { text: string } => fields(given, { text: (copied) => text(copied, LARGEST_EXPORT) }),
  about: nothing,
};
