/** One of several; not shown where there is nothing to choose. */
import { clean } from "../lib/text";

/** all: what choosing none of them is called; without it one is always chosen. */
export function Choice({
  label,
  value,
  options,
  all,
  onChoose,
}: {
  label: string;
  value: string | null;
  options: readonly (string | { value: string; text: string })[];
  all?: string;
  onChoose: (value: string | null) => void;
}) {
  if (options.length < 2) return null;
  return (
    <label>
      {label}{" "}
      <select value={value ?? ""} onChange={(event) => onChoose(event.currentTarget.value || null)}>
        {all === undefined ? null : <option value="">{all}</option>}
        {options.map((each) => {
          const { value: of, text } = typeof each === "string" ? { value: each, text: each } : each;
          return (
            <option value={of} key={of}>
              {clean(text, 120)}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** What was kept, where it still is one of them. */
export const still = (kept: unknown, options: readonly string[]): string | null =>
  typeof kept === "string" && options.includes(kept) ? kept : null;

export const distinct = <Row,>(rows: readonly Row[], of: (row: Row) => string | null): string[] =>
  [...new Set(rows.flatMap((row) => of(row) ?? []))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
