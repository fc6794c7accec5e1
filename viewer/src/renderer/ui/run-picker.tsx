/** Which run is looked at: the one chosen, else the newest that has something in it. Shared by all views. */
import type { RunRow } from "../../contract/run";
import { runTitle, runWords } from "../lib/run-words";
import { type Asked, useQuery } from "../state/query";
import { chooseRun, currentRun } from "../state/state";
import { Rows } from "./asked";

/** Runs come newest first. One that was interrupted before its first trial has nothing to show. */
const chosen = ({ rows }: Asked<RunRow>): RunRow | null =>
  rows?.find(({ run_id }) => run_id === currentRun.value) ??
  rows?.find(({ trials_done }) => trials_done > 0) ??
  rows?.[0] ??
  null;

/** The run that a view shows; null while it is not known, and in a file without any. */
export const useRun = (): RunRow | null => chosen(useQuery("runs", {}));

export function RunPicker() {
  const runs = useQuery("runs", {});
  const run = chosen(runs);
  return (
    <Rows asked={runs} empty="This file holds no run yet. ./task lab:weave measures one.">
      {(rows) => (
        <div class="run-picker">
          <label>
            Run{" "}
            <select value={run?.run_id ?? ""} onChange={(event) => chooseRun(event.currentTarget.value)}>
              {rows.map((each) => (
                <option value={each.run_id} key={each.run_id}>
                  {runTitle(each)}
                </option>
              ))}
            </select>
          </label>
          {run ? <p class="quiet">{runWords(run)}</p> : null}
        </div>
      )}
    </Rows>
  );
}
