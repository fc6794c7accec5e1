/** A command line as a POSIX shell reads it back: safe to paste. */

const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/;
const CONTROL = /[\u0000-\u001f\u007f]/;

function quoted(word: string): string {
  if (SAFE.test(word)) return word;
  if (!CONTROL.test(word)) return `'${word.replace(/'/g, `'\\''`)}'`;
  // $'…': a line end or an escape that a terminal would act on is written out.
  const escaped = word
    .replace(/[\\']/g, "\\$&")
    .replace(/[\u0000-\u001f\u007f]/g, (found) => `\\x${found.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `$'${escaped}'`;
}

export const commandLine = (argv: readonly string[]): string => argv.map(quoted).join(" ");
