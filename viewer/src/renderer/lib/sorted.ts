/** Rows in the order of a column; what is missing comes last, either way. */

interface By<Row> {
  by?: (row: Row) => string | number | null;
}

export function sorted<Row>(rows: Row[], column: By<Row> | undefined, down: boolean): Row[] {
  const by = column?.by;
  if (!by) return rows;
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [by(one), by(other)];
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return (
      sign *
      (typeof a === "number" && typeof b === "number"
        ? a - b
        : String(a).localeCompare(String(b), "en", { numeric: true }))
    );
  });
}
