/**
 * JSON texts of a database, which may be anybody's: parsed to a shape that was checked, or null. Views never call
 * JSON.parse themselves: a text that is no JSON, or another thing than expected, is shown as not known.
 *
 *     const variants = parsed(run.variants, list(object({ overlay: text, mode: nullable(text), encrypted: yesNo })));
 */
export type Shape<Found> = (given: unknown) => given is Found;
export type Shaped<S> = S extends Shape<infer Found> ? Found : never;

export const text: Shape<string> = (given): given is string => typeof given === "string";
export const finite: Shape<number> = (given): given is number => typeof given === "number" && Number.isFinite(given);
export const yesNo: Shape<boolean> = (given): given is boolean => typeof given === "boolean";
/** Whatever it is: to be looked at further, or printed. */
export const anything: Shape<unknown> = (_given): _given is unknown => true;

export const nullable =
  <Found>(shape: Shape<Found>): Shape<Found | null> =>
  (given): given is Found | null =>
    given === null || shape(given);

/** For properties that may be missing. */
export const optional =
  <Found>(shape: Shape<Found>): Shape<Found | undefined> =>
  (given): given is Found | undefined =>
    given === undefined || shape(given);

export const either =
  <One, Other>(one: Shape<One>, other: Shape<Other>): Shape<One | Other> =>
  (given): given is One | Other =>
    one(given) || other(given);

export const list =
  <Found>(shape: Shape<Found>): Shape<Found[]> =>
  (given): given is Found[] =>
    Array.isArray(given) && given.every(shape);

const plainObject = (given: unknown): given is Record<string, unknown> =>
  typeof given === "object" && given !== null && !Array.isArray(given);

/** An object with any names, all of whose values have the shape. */
export const record =
  <Found>(shape: Shape<Found>): Shape<Record<string, Found>> =>
  (given): given is Record<string, Found> =>
    plainObject(given) && Object.values(given).every(shape);

/** An object with at least these properties of its own. */
export const object =
  <Parts extends Record<string, Shape<unknown>>>(parts: Parts): Shape<{ [Name in keyof Parts]: Shaped<Parts[Name]> }> =>
  (given): given is { [Name in keyof Parts]: Shaped<Parts[Name]> } =>
    plainObject(given) &&
    Object.entries(parts).every(([name, shape]) => shape(Object.hasOwn(given, name) ? given[name] : undefined));

export function parsed<Found>(json: string | null | undefined, shape: Shape<Found>): Found | null {
  if (typeof json !== "string") return null;
  try {
    const found: unknown = JSON.parse(json);
    return shape(found) ? found : null;
  } catch {
    return null; // Nesting that is too deep ends here too: JSON.parse throws for it.
  }
}

/** Whatever the object holds, to be listed; nothing where it is none. */
export const fields = (json: string | null | undefined): Record<string, unknown> =>
  parsed(json, record(anything)) ?? {};

/** For a cell: texts as they are, anything else as JSON writes it. */
export const oneLine = (found: unknown): string => (typeof found === "string" ? found : (JSON.stringify(found) ?? "–"));
