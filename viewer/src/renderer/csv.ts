/** RFC 4180, and no cell that a spreadsheet would run: OWASP's CSV injection. */
import type { Cell, Grid } from "./charts/figure";

// Also behind white space and control characters, which a spreadsheet may drop. As in results_export.py.
const FORMULA = /^(?:[\t\r\n]|[\s\p{Cc}]*[=+\-@])/u;

const cell = (found: Cell): string => {
  if (found === null) return "";
  if (typeof found === "number") return String(found);
  const safe = FORMULA.test(found) ? `'${found}` : found;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
};

export const csv = (grid: Grid): string =>
  `${[grid.columns.map(({ name, unit }) => (unit ? `${name} (${unit})` : name)), ...grid.rows]
    .map((row) => row.map(cell).join(","))
    .join("\r\n")}\r\n`;
