/** A table's name as a select keeps it, and as a question's parameters. */
import type { TableKey } from "../../../contract/compare";

export const parametersOf = ({
  benchmark,
  metric,
  placement,
  direction,
  client_node,
  server_node,
}: TableKey): TableKey => ({
  benchmark,
  metric,
  placement,
  direction,
  client_node,
  server_node,
});

export const keyOf = (table: TableKey): string => JSON.stringify(Object.values(parametersOf(table)));
