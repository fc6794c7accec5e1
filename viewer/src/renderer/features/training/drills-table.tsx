/** The drills that were tried, by the symptom that they are named for. */
import { clean } from "../../lib/text";
import { time } from "../../lib/units";
import { type Column, SortedTable } from "../../ui/sorted-table";
import type { DrillHistory } from "./drills";
import { clock } from "./words";

const COLUMNS: Column<DrillHistory>[] = [
  { title: "Drill", by: ({ title }) => title, cell: ({ title }) => clean(title, 100) },
  { title: "Name", by: ({ drill }) => drill, cell: ({ drill }) => clean(drill, 60) },
  {
    title: "Level",
    by: ({ level }) => level,
    number: true,
    cell: ({ level }) => level,
    tip: "1 is easiest, 3 hardest",
  },
  { title: "Tries", by: ({ tries }) => tries, number: true, cell: ({ tries }) => tries },
  { title: "Repaired", by: ({ repaired }) => repaired, number: true, cell: ({ repaired }) => repaired },
  {
    title: "Best score",
    by: ({ bestScore }) => bestScore,
    number: true,
    cell: ({ bestScore }) => bestScore ?? "–",
    tip: "Of 100",
  },
  {
    title: "Shortest",
    by: ({ shortest }) => shortest,
    number: true,
    cell: ({ shortest }) => clock(shortest),
    tip: "From the ticket to the repair",
  },
  { title: "Last tried", by: ({ last }) => last, class: "nowrap", cell: ({ last }) => time(last) },
];

export function DrillsTable({
  drills,
  chosen,
  onChoose,
}: {
  drills: DrillHistory[];
  chosen: string | null;
  onChoose: (drill: string) => void;
}) {
  return (
    <SortedTable
      label="Drills"
      columns={COLUMNS}
      rows={drills}
      keyOf={({ drill }) => drill}
      chosen={chosen}
      onChoose={({ drill }) => onChoose(drill)}
    />
  );
}
