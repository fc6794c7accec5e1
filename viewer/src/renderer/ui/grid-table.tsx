/** A grid of values as a table that can be copied. */
import { useState } from "preact/hooks";
import { tabbed } from "../lib/csv";
import type { Cell, Grid } from "../lib/grid";
import { copy } from "../state/clipboard";
import { CopyTable } from "./copied";

/** Rows that are shown at first, and again with each request for more: a page of a hundred thousand takes a minute. */
const PAGE = 500;

const point = (found: unknown): boolean => found !== null && found !== undefined;

const shown = (cell: Cell): string =>
  cell === null ? "–" : typeof cell === "number" ? String(Number(cell.toPrecision(6))) : cell;

/**
 * onPoint: rows of a point get a button, so that the keyboard reaches what the mouse finds in the plot. behind: the view that they lead to.
 * copied: what a copy holds, where that is not what is shown.
 */
export function GridTable({
  grid,
  label,
  onPoint,
  behind = "Evidence",
  copied = grid,
}: {
  grid: Grid;
  label: string;
  onPoint?: (point: unknown) => void;
  behind?: string;
  copied?: Grid;
}) {
  const [most, setMost] = useState(PAGE);
  return (
    <div class="grid-table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {onPoint && grid.points ? <th scope="col">Behind it</th> : null}
            {grid.columns.map(({ name, unit, number }) => (
              <th scope="col" class={number ? "number" : ""}>
                {unit ? `${name} (${unit})` : name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {grid.rows.slice(0, most).map((row, at) => (
            <tr>
              {onPoint && grid.points ? (
                <td>
                  {point(grid.points[at]) ? (
                    <button type="button" class="link" onClick={() => onPoint(grid.points?.[at])}>
                      {behind}
                    </button>
                  ) : null}
                </td>
              ) : null}
              {row.map((cell, column) => (
                <td class={typeof cell === "number" || cell === null || grid.columns[column]?.number ? "number" : ""}>
                  {shown(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {grid.rows.length > most ? (
        <p>
          {most} of {grid.rows.length} rows; a copy, and the CSV file, hold all.{" "}
          <button type="button" onClick={() => setMost(most + PAGE)}>
            Show {Math.min(PAGE, grid.rows.length - most)} more
          </button>
        </p>
      ) : null}
      <CopyTable onCopy={() => void copy(tabbed(copied))} />
    </div>
  );
}
