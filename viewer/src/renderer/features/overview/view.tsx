/** Every run of the file: what was measured, where, how far it is; and what the chosen one says. */
import type { RunRow } from "../../../contract/run";
import { tierWords, variantsOf, variantWords } from "../../lib/runs";
import { useNow } from "../../state/now";
import { useQuery } from "../../state/query";
import { chooseRun, currentRun, filterOf, keepFilter } from "../../state/state";
import { Rows } from "../../ui/asked";
import { RunDetails } from "./details";
import { groupOf, mayBeKilled } from "./run-state";
import { RunsTable } from "./runs-table";

/** Fewer are seen at a glance. */
const FILTERED_FROM = 11;

const words = (run: RunRow): string =>
  [
    run.run_id,
    run.state,
    run.origin,
    run.profile,
    tierWords(run),
    run.suite,
    run.cluster,
    run.provider,
    run.accelerator,
    run.system,
    run.machine,
    groupOf(run)?.id,
    ...variantsOf(run).map(variantWords),
  ]
    .join(" ")
    .toLowerCase();

const matching = (runs: RunRow[], text: string): RunRow[] => {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  return parts.length ? runs.filter((run) => parts.every((part) => words(run).includes(part))) : runs;
};

export function View() {
  const asked = useQuery("runs", {});
  return (
    <Rows asked={asked} empty="This file holds no run yet. ./task lab:weave measures one.">
      {(runs) => <Found runs={runs} />}
    </Rows>
  );
}

function Found({ runs }: { runs: RunRow[] }) {
  const now = useNow(runs.some((run) => run.state === "running" && !mayBeKilled(run, Date.now() / 1000)));
  const { text } = filterOf("overview", { text: "" });
  const filtered = runs.length >= FILTERED_FROM;
  const shown = filtered ? matching(runs, text) : runs;
  const chosen = shown.find(({ run_id }) => run_id === currentRun.value) ?? shown[0];
  return (
    <>
      <h2>
        {runs.length} {runs.length === 1 ? "run" : "runs"}
      </h2>
      {filtered ? (
        <div class="filters">
          <label>
            Only runs with{" "}
            <input
              type="search"
              value={text}
              placeholder="profile, overlay, suite, …"
              onInput={(event) => keepFilter("overview", { text: event.currentTarget.value })}
            />
          </label>
          <span class="quiet" role="status">
            {shown.length === runs.length ? "" : `${shown.length} of ${runs.length} shown`}
          </span>
        </div>
      ) : null}
      {shown.length ? (
        <RunsTable runs={shown} now={now} chosen={chosen?.run_id ?? null} onChoose={(run) => chooseRun(run.run_id)} />
      ) : (
        <p class="empty">No run matches. Take a word away.</p>
      )}
      {chosen ? <RunDetails key={chosen.run_id} run={chosen} now={now} /> : null}
    </>
  );
}
