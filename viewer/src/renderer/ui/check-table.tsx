/** Checks of a profile as a table. */
import type { CheckRow } from "../../contract/columns";
import { clean } from "../lib/text";
import { scaleOf, time, withUnit } from "../lib/units";
import { settings } from "../state/state";
import { TableScroll } from "./copied";
import { Text } from "./text";

export function CheckTable({ rows }: { rows: CheckRow[] }) {
  return (
    <TableScroll label="Checks of the profile">
      <table>
        <thead>
          <tr>
            {["Verdict", "Check", "Between", "Expected", "Measured", "Why, and what else", "At"].map((title) => (
              <th scope="col">{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const scale = scaleOf(row.unit, [row.expected, row.measured], settings.value);
            return (
              <tr key={row.check_id}>
                <td class={`nowrap verdict ${row.verdict}`}>
                  {row.verdict === "not-applicable" ? "does not apply" : row.verdict}
                </td>
                <td class="nowrap">{clean(row.name, 40)}</td>
                <td class="nowrap">
                  {(row.client_node === row.server_node ? [row.client_node] : [row.client_node, row.server_node])
                    .map((node) => clean(node, 30))
                    .join(" → ")}
                </td>
                <td class="number nowrap">
                  {withUnit(row.expected, scale)}
                  {row.tolerance
                    ? ` ± ${withUnit(row.tolerance, scaleOf(row.unit, [row.tolerance], settings.value))}`
                    : ""}
                </td>
                <td class="number nowrap">{withUnit(row.measured, scale)}</td>
                <td>
                  <Text value={row.reason} />
                </td>
                <td class="nowrap">{time(row.recorded_at)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </TableScroll>
  );
}
