/** Texts of a database, for people: at most so long, and without characters that hide or turn what stands beside them. */

/**
 * Control characters, and those of Unicode that steer the direction of what follows or take no room
 * (https://www.unicode.org/reports/tr36/, bidirectional text spoofing). Letters that run from right to left stay.
 */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export function plainText(text: string, most = 200): string {
  const short = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return short.replace(HIDDEN, "�");
}

/** The same of a name, shortened in its middle: names that begin alike end otherwise. */
export function plainName(name: string, most: number): string {
  if (name.length <= most) return plainText(name, most);
  const tail = Math.floor((most - 1) / 2);
  return plainText(`${name.slice(0, most - 1 - tail)}…${name.slice(-tail)}`, most);
}

/** Names as they may stand beside each other, in their order: those that are alike when shortened are numbered. */
export function distinctNames(names: readonly string[], most: number): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    let found = plainName(name, most);
    for (let number = 2; taken.has(found); number++) {
      const end = ` (${number})`;
      found = `${plainName(name, most - end.length)}${end}`;
    }
    taken.add(found);
    return found;
  });
}

/** For raw output, which has lines: their ends and tabs stay. */
export const plainLines = (text: string): string =>
  text.replace(HIDDEN, (found) => (found === "\n" || found === "\t" ? found : "�"));

/** What was cut ends with dots already. */
export const ended = (words: string): string => (words.endsWith("…") ? words : `${words}.`);
