/** The table of attempts. */
import type { AttemptRow } from "../../../contract/training";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { time } from "../../lib/units";
import { type Column, SortedTable } from "../../ui/sorted-table";
import { clock, elapsed, stateWords } from "./words";

const columns = (now: number): Column<AttemptRow>[] => [
  {
    title: "Ticket given",
    by: ({ started_at }) => started_at,
    class: "nowrap",
    cell: ({ started_at }) => time(started_at),
  },
  { title: "Drill", by: ({ drill }) => drill, cell: ({ drill }) => clean(drill, 60) },
  {
    title: "Trainee",
    by: ({ trainee }) => trainee,
    cell: ({ trainee }) => (trainee === null ? "–" : clean(trainee, 60)),
  },
  {
    title: "State",
    by: ({ state }) => state,
    class: "nowrap",
    cell: ({ state }) => <span class={`state ${state}`}>{stateWords(state)}</span>,
  },
  {
    title: "Took",
    by: (attempt) => elapsed(attempt, now),
    number: true,
    cell: (attempt) => clock(elapsed(attempt, now)),
    tip: "From the ticket to its end, or until now",
  },
  { title: "Score", by: ({ score }) => score, number: true, cell: ({ score }) => score ?? "–", tip: "Of 100" },
  { title: "Hints", by: ({ hints }) => hints, number: true, cell: ({ hints }) => hints },
  {
    title: "Failed checks",
    by: ({ failed_checks }) => failed_checks,
    number: true,
    cell: ({ failed_checks }) => failed_checks,
  },
  { title: "Overlay", by: variantWords, cell: variantWords },
  {
    title: "Cluster",
    by: ({ cluster }) => cluster,
    cell: ({ cluster, provider }) => (
      <>
        {clean(cluster, 40)}
        <small class="below">{clean(provider, 40)}</small>
      </>
    ),
  },
];

export function AttemptsTable({
  attempts,
  now,
  chosen,
  onChoose,
}: {
  attempts: AttemptRow[];
  now: number;
  chosen: string | null;
  onChoose: (attempt: AttemptRow) => void;
}) {
  return (
    <SortedTable
      label="Attempts"
      columns={columns(now)}
      rows={attempts}
      keyOf={({ attempt_id }) => attempt_id}
      chosen={chosen}
      onChoose={onChoose}
    />
  );
}
