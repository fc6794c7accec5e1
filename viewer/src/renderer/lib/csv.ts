/** Tables for other programs: files by RFC 4180, and lines with tabs to be pasted; no cell that a spreadsheet would run. */
import type { Cell, Grid } from "./grid";

// Also behind white space and control characters, which a spreadsheet may drop. As in report/export.py, but for texts
// that are numbers.
const FORMULA = /^(?:[=@\t\r\n]|[+-](?![\d.,]+$)|[\s\p{Cc}]+[=+\-@])/u;

/** OWASP's CSV injection: what begins like a formula and is no number gets an apostrophe. */
const harmless = (found: string): string => (FORMULA.test(found) ? `'${found}` : found);

const table = ({ columns, rows }: Grid): Cell[][] => [
  columns.map(({ name, unit }) => (unit ? `${name} (${unit})` : name)),
  ...rows,
];

const quoted = (found: Cell): string => {
  if (found === null) return "";
  if (typeof found === "number") return String(found);
  const safe = harmless(found);
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};

export const csv = (grid: Grid): string =>
  `${table(grid)
    .map((row) => row.map(quoted).join(","))
    .join("\r\n")}\r\n`;

/** A cell's own tabs and line ends become spaces. */
export const tabs = (rows: readonly (readonly Cell[])[]): string =>
  rows
    .map((row) =>
      row
        .map((cell) => (typeof cell === "string" ? harmless(cell).replace(/[\t\r\n]+/g, " ") : (cell ?? "")))
        .join("\t"),
    )
    .join("\n");

export const tabbed = (grid: Grid): string => tabs(table(grid));
