/** A table's name as a select keeps it, and as a question's parameters. */
import type { TableKey, TableRow } from "../../../contract/compare";
import type { Kept } from "./kept";

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

/** What has to be kept so that this table of a run is shown, whatever was chosen before. */
export const choiceOf = (table: TableKey): Pick<Kept, "placement" | "metric" | "table"> => ({
  placement: table.placement,
  metric: table.metric,
  table: keyOf(table),
});

export const distinct = (words: string[]): string[] => [...new Set(words)];

/** Primary first: that is what the run was made for. */
const inOrder = (tables: TableRow[]): TableRow[] => [...tables].sort((one, other) => other.is_primary - one.is_primary);

export interface ChosenTable {
  placements: string[];
  metrics: string[];
  metric: string;
  /** Of that metric, where it was chosen to look. */
  tables: TableRow[];
  /** Nothing where there is no table at all. */
  table: TableRow | undefined;
}

/** Of a run's tables the one that was chosen; what is not there counts as not chosen. */
export function chosenTable(all: TableRow[], choice: Pick<Kept, "placement" | "metric" | "table">): ChosenTable {
  const placements = distinct(all.map(({ placement }) => placement));
  const placed = inOrder(all).filter(
    ({ placement }) =>
      choice.placement === null || !placements.includes(choice.placement) || placement === choice.placement,
  );
  const metrics = distinct(placed.map(({ metric }) => metric));
  const metric = metrics.includes(choice.metric) ? choice.metric : (metrics[0] ?? "");
  const tables = placed.filter((table) => table.metric === metric);
  return {
    placements,
    metrics,
    metric,
    tables,
    table: tables.find((each) => keyOf(each) === choice.table) ?? tables[0],
  };
}
