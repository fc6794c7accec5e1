/** A table of the page for a spreadsheet: texts whole that the page cuts, and nothing for what was not measured. */
import { tabs } from "../lib/csv";
import { wholeText } from "./text";

function textOf(node: Node): string {
  if (!(node instanceof HTMLElement)) return node.textContent ?? "";
  // Marks of sorting, and buttons that unfold a text.
  if (node.matches('[aria-hidden="true"], button[aria-expanded]')) return "";
  const text = wholeText(node) ?? [...node.childNodes].map(textOf).join("");
  return node.matches(".below, div, p, li") ? ` ${text} ` : text;
}

const cellText = (cell: Node): string | null => {
  const text = textOf(cell).replace(/\s+/g, " ").trim();
  return text === "" || text === "–" ? null : text;
};

export const tableText = (table: HTMLTableElement): string =>
  tabs([...table.rows].map((row) => [...row.cells].map(cellText)));
