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

/** For raw output, which has lines: their ends and tabs stay. */
export const plainLines = (text: string): string =>
  text.replace(HIDDEN, (found) => (found === "\n" || found === "\t" ? found : "�"));

/** What was cut ends with dots already. */
export const ended = (words: string): string => (words.endsWith("…") ? words : `${words}.`);
