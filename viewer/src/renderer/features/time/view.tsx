/** What happened within trials: rates and latencies over the time since each trial's start, overlays aligned. */
import type { TrialRow } from "../../../contract/evidence";
import type { RunRow } from "../../../contract/run";
import type { TimeBenchmarkRow, TimeTrialRow } from "../../../contract/time";
import { countsOf } from "../../lib/lost";
import { type Placed, placedVariants, variantKey } from "../../lib/variants";
import { useQuery } from "../../state/query";
import { filterOf, keepFilter } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Lost } from "../../ui/lost";
import { RunPicker, useRun } from "../../ui/run-picker";
import { Unusable } from "../../ui/unusable";
import { TimePanels } from "./panels";

export interface TimeChoice {
  /** Benchmark and place; null: the first. */
  benchmark: string | null;
  /** null: all. */
  block: number | null;
  /** Keys of the overlays and modes that are not drawn. */
  hidden: string[];
}

const OTHERWISE: TimeChoice = { benchmark: null, block: null, hidden: [] };
const choose = (part: Partial<TimeChoice>): void => keepFilter("time", { ...filterOf("time", OTHERWISE), ...part });

export function View() {
  const run = useRun();
  return (
    <>
      <h2>Time</h2>
      <RunPicker />
      {run ? <OfRun key={run.run_id} run={run} /> : null}
    </>
  );
}

type Measured = Pick<TimeBenchmarkRow, "benchmark" | "placement" | "direction" | "client_node" | "server_node">;

const keyOf = (row: Measured): string =>
  [row.benchmark, row.placement, row.direction, row.client_node, row.server_node].join(" ");

function OfRun({ run }: { run: RunRow }) {
  const asked = useQuery("time_benchmarks", { run: run.run_id });
  const empty = run.trials_ok
    ? "No trial of this run that holds was measured in intervals: its tools gave one value for the whole trial."
    : run.trials_planned
      ? "No trial of this run has ended yet."
      : "This run has no trials: it checked a profile.";
  return (
    <Rows
      asked={asked}
      empty={
        <>
          <Lost counts={countsOf(run)} of="this run" otherwise={empty} />
          <NotDrawn run={run} benchmark={null} />
        </>
      }
    >
      {(rows) => {
        const chosen = rows.find((row) => keyOf(row) === filterOf("time", OTHERWISE).benchmark) ?? rows[0];
        return chosen ? (
          <>
            {rows.length > 1 ? (
              <div class="filters">
                <label>
                  Benchmark{" "}
                  <select value={keyOf(chosen)} onChange={(event) => choose({ benchmark: event.currentTarget.value })}>
                    {rows.map((row) => (
                      <option value={keyOf(row)}>{placed(row, rows)}</option>
                    ))}
                  </select>
                </label>
              </div>
            ) : null}
            <OfBenchmark key={keyOf(chosen)} run={run} benchmark={chosen} what={placed(chosen, rows)} />
            <NotDrawn run={run} benchmark={chosen} />
          </>
        ) : null;
      }}
    </Rows>
  );
}

/**
 * Trials of the benchmark that are no line; and those of benchmarks of which no trial holds, which are not offered: nobody
 * knows whether they would have been measured in intervals.
 */
function NotDrawn({ run, benchmark }: { run: RunRow; benchmark: TimeBenchmarkRow | null }) {
  const lost = run.trials_failed + run.trials_void > 0;
  const trials = useQuery("trials", lost ? { run: run.run_id, status: null, variant: null, benchmark: null } : null);
  const kinds = useQuery("trial_kinds", lost ? { run: run.run_id } : null);
  const holding = new Set((kinds.rows ?? []).flatMap((row) => (row.status === "ok" ? [row.benchmark] : [])));
  const own = (row: TrialRow): boolean =>
    !holding.has(row.benchmark) || (benchmark !== null && keyOf(row) === keyOf(benchmark));
  return kinds.state === "ready" ? (
    <Unusable trials={(trials.rows ?? []).filter(isLost).filter((row) => !row.warmup && own(row))} />
  ) : null;
}

const isLost = (row: TrialRow): row is TrialRow & { status: "failed" | "void" } =>
  row.status === "failed" || row.status === "void";

/** The benchmark, and of its place what distinguishes it from others. */
function placed(row: TimeBenchmarkRow, rows: TimeBenchmarkRow[]): string {
  const same = rows.filter(({ benchmark }) => benchmark === row.benchmark);
  if (same.length < 2) return row.benchmark;
  const nodes = row.client_node === row.server_node ? row.client_node : `${row.client_node} – ${row.server_node}`;
  return `${row.benchmark}, ${row.placement}, ${nodes}${same.some(({ direction }) => direction !== row.direction) ? `, ${row.direction}` : ""}`;
}

function OfBenchmark({ run, benchmark, what }: { run: RunRow; benchmark: TimeBenchmarkRow; what: string }) {
  const { placement, direction, client_node: client, server_node: server } = benchmark;
  const asked = useQuery("time_trials", {
    run: run.run_id,
    benchmark: benchmark.benchmark,
    placement,
    direction,
    client,
    server,
  });
  return (
    <Rows asked={asked} empty="No trial of this benchmark was measured in intervals.">
      {(rows) => <Chosen run={run} benchmark={benchmark} what={what} rows={rows} />}
    </Rows>
  );
}

function Chosen({
  run,
  benchmark,
  what,
  rows,
}: {
  run: RunRow;
  benchmark: TimeBenchmarkRow;
  what: string;
  rows: TimeTrialRow[];
}) {
  const kept = filterOf("time", OTHERWISE);
  const variants = [...placedVariants(run, rows).values()];
  const measured = new Set(rows.map(variantKey));
  const present = variants.filter(({ key }) => measured.has(key));
  const blocks = [...new Set(rows.map(({ block }) => block))].sort((one, other) => one - other);
  const block = kept.block !== null && blocks.includes(kept.block) ? kept.block : null;
  const hidden = new Set(kept.hidden);
  const trials = rows.filter(
    (row) => !row.warmup && (block === null || row.block === block) && !hidden.has(variantKey(row)),
  );
  return (
    <>
      <div class="filters">
        {blocks.length > 1 ? (
          <label>
            Blocks{" "}
            <select
              value={block ?? ""}
              onChange={(event) =>
                choose({ block: event.currentTarget.value === "" ? null : Number(event.currentTarget.value) })
              }
            >
              <option value="">all {blocks.length}, thin</option>
              {blocks.map((each) => (
                <option value={each}>block {each}</option>
              ))}
            </select>
          </label>
        ) : null}
        {present.length > 1 ? <Overlays present={present} hidden={hidden} /> : null}
      </div>
      {trials.length ? (
        <TimePanels benchmark={benchmark} what={what} trials={trials} variants={variants} />
      ) : (
        <p class="empty">Nothing is chosen: take an overlay in.</p>
      )}
    </>
  );
}

function Overlays({ present, hidden }: { present: Placed[]; hidden: Set<string> }) {
  const shown = present.filter(({ key }) => !hidden.has(key));
  const toggle = (key: string): void => {
    const next = new Set(hidden);
    if (!next.delete(key)) next.add(key);
    choose({ hidden: [...next] });
  };
  return (
    <details class="choice">
      <summary>
        Overlays: {shown.length === present.length ? `all ${present.length}` : `${shown.length} of ${present.length}`}
      </summary>
      <div class="boxes">
        {present.map(({ key, name }) => (
          <label key={key}>
            <input type="checkbox" checked={!hidden.has(key)} onChange={() => toggle(key)} /> {name}
          </label>
        ))}
        <span class="tools">
          <button type="button" onClick={() => choose({ hidden: [] })}>
            All
          </button>
          <button type="button" onClick={() => choose({ hidden: present.slice(1).map(({ key }) => key) })}>
            Only {present[0]?.name}
          </button>
        </span>
      </div>
    </details>
  );
}
