/** The table of runs. */
import type { RunRow } from "../../../contract/run";
import { ACCELERATORS } from "../../../contract/terms";
import { enoughAfter, enoughWords, tierWords, variantsOf, variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { duration, time } from "../../lib/units";
import { type Column, SortedTable } from "../../ui/sorted-table";
import { elapsed, groupOf, stateAdvice, stateWords, variantsInShort } from "./run-state";

const columns = (now: number): Column<RunRow>[] => [
  {
    title: "Started",
    by: (run) => run.started_at ?? run.created_at,
    class: "nowrap",
    cell: (run) => time(run.started_at ?? run.created_at),
  },
  { title: "State", by: (run) => stateWords(run, now), cell: (run) => <State run={run} now={now} /> },
  { title: "Trials", by: (run) => run.trials_done, class: "nowrap", cell: (run) => <Trials run={run} /> },
  {
    title: "Took",
    by: (run) => elapsed(run, now),
    number: true,
    class: "nowrap",
    cell: (run) => duration(elapsed(run, now)),
    tip: "From its first start to its end, or until now",
  },
  {
    title: "Overlays",
    by: variantsInShort,
    cell: (run) => (
      <span title={variantsOf(run).slice(0, 60).map(variantWords).join("\n")}>{variantsInShort(run)}</span>
    ),
  },
  {
    title: "Profile",
    by: (run) => run.profile,
    class: "nowrap",
    cell: (run) => <Profile run={run} />,
    tip: "What the underlay is held to, and the cloud's tier that it stands for",
  },
  { title: "Suite", by: (run) => run.suite, cell: (run) => <Suite run={run} />, tip: "What was measured" },
  {
    title: "Cluster",
    by: (run) => run.cluster,
    cell: (run) => <Two first={clean(run.cluster, 40)} second={clean(run.provider, 40)} />,
  },
  {
    title: "System",
    by: (run) => run.system ?? "",
    cell: (run) => (run.system === null ? "–" : clean(run.system, 30)),
    tip: "What the nodes run on: results of different systems are never pooled",
  },
  {
    title: "Accelerator",
    by: (run) => run.accelerator,
    cell: (run) => (
      <span title={`${ACCELERATORS[run.accelerator] ?? ""}; ${clean(run.machine)}`}>{run.accelerator}</span>
    ),
    tip: "How the nodes' CPUs ran: results of different ones are never pooled",
  },
];

export function RunsTable({
  runs,
  now,
  chosen,
  onChoose,
}: {
  runs: RunRow[];
  now: number;
  chosen: string | null;
  onChoose: (run: RunRow) => void;
}) {
  return (
    <SortedTable
      label="Runs"
      columns={columns(now)}
      rows={runs}
      keyOf={(run) => run.run_id}
      chosen={chosen}
      onChoose={onChoose}
    />
  );
}

const Two = ({ first, second }: { first: string; second: string | null }) => (
  <>
    {first}
    {second ? <small class="below">{second}</small> : null}
  </>
);

function State({ run, now }: { run: RunRow; now: number }) {
  const words = stateWords(run, now);
  return (
    <span
      class={`state ${run.origin === "imported" ? "imported" : run.state}`}
      title={stateAdvice(run, now) ?? undefined}
    >
      {words}
    </span>
  );
}

function Trials({ run }: { run: RunRow }) {
  if (run.trials_planned === 0) return <span title="Checks of profiles only">none</span>;
  const lost = [
    run.trials_failed ? `${run.trials_failed} failed` : "",
    run.trials_void ? `${run.trials_void} void` : "",
  ]
    .filter(Boolean)
    .join(", ");
  const enough = enoughAfter(run);
  return (
    <>
      <Two
        first={enough === null ? `${run.trials_done} of ${run.trials_planned}` : String(run.trials_done)}
        second={lost || null}
      />
      {enough === null ? null : (
        <small class="below wraps" title="Every interval of the primary metric was as narrow as PRECISION asked">
          {enoughWords(enough, run)}
        </small>
      )}
      {run.state !== "done" && run.trials_done < run.trials_planned ? (
        <progress
          class="below"
          max={run.trials_planned}
          value={run.trials_done}
          aria-label={`${run.trials_done} of ${run.trials_planned} trials`}
        />
      ) : null}
    </>
  );
}

function Profile({ run }: { run: RunRow }) {
  const group = groupOf(run);
  const tier = tierWords(run);
  return (
    <>
      {clean(run.profile, 40)}
      {tier ? <small class="below">{clean(tier, 40)}</small> : null}
      {group ? (
        <small class="below" title={`Asked for together with other tiers: group ${clean(group.id)}`}>
          <span class="tag">
            tier {group.at || "?"} of {group.of || "?"} together
          </span>
        </small>
      ) : null}
    </>
  );
}

const Suite = ({ run }: { run: RunRow }) => (
  <Two first={clean(run.suite, 40)} second={run.scale === 1 ? null : `× ${run.scale}`} />
);
