/** Rows that can be sorted by a column and chosen: the table of runs, the list of trials. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { sorted } from "../lib/sorted";
import { TableScroll } from "./copied";

export interface Column<Row> {
  title: string;
  /** What sorting goes by; missing values come last either way. Without it the column is not sorted by. */
  by?: (row: Row) => string | number | null;
  cell: (row: Row) => ComponentChildren;
  number?: boolean;
  /** What the word in the heading means. */
  tip?: string;
  class?: string;
}

interface Order {
  column: number;
  down: boolean;
}

/** The first column's cell is what chooses the row, so that the keyboard reaches it. */
export function SortedTable<Row>({
  label,
  columns,
  rows,
  keyOf,
  chosen,
  onChoose,
}: {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  chosen: string | number | null;
  onChoose: (row: Row) => void;
}) {
  // Not sorted: in the order that the question gave.
  const [order, setOrder] = useState<Order | null>(null);
  const shown = order ? sorted(rows, columns[order.column], order.down) : rows;
  const next = (column: number): Order | null =>
    order?.column !== column ? { column, down: false } : order.down ? null : { column, down: true };
  return (
    <TableScroll label={label} class="sorted-table">
      <table class="wide">
        <thead>
          <tr>
            {columns.map(({ title, by, number, tip }, at) => (
              <th
                scope="col"
                class={number ? "number" : ""}
                title={tip}
                aria-sort={order?.column === at ? (order.down ? "descending" : "ascending") : undefined}
              >
                {by ? (
                  <button type="button" class="sort" onClick={() => setOrder(next(at))}>
                    {title}
                    <span aria-hidden="true">{order?.column === at ? (order.down ? " ▼" : " ▲") : ""}</span>
                  </button>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => {
            const isChosen = keyOf(row) === chosen;
            return (
              <tr key={keyOf(row)} class={isChosen ? "chosen" : ""} onClick={() => onChoose(row)}>
                {columns.map(({ cell, number, class: name }, at) => (
                  <td class={[number ? "number" : "", name ?? ""].join(" ").trim()}>
                    {at === 0 ? (
                      <button type="button" class="link" aria-pressed={isChosen} onClick={() => onChoose(row)}>
                        {cell(row)}
                      </button>
                    ) : (
                      cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </TableScroll>
  );
}
