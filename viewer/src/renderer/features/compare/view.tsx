/** Overlays × modes: of one run on one tier, or of all finished runs by tier. */
import { useQuery } from "../../state/query";
import { RunPicker, useRun } from "../../ui/run-picker";
import { Switch } from "./choices";
import { keep, kept } from "./kept";
import { OneRun } from "./one-run";
import { TiersGrid } from "./tiers-grid";

export function View() {
  const { part } = kept();
  const run = useRun();
  const finished = useQuery("runs", {}).rows?.filter(({ state, trials_ok }) => state === "done" && trials_ok > 0) ?? [];
  const shown = finished.length > 1 ? part : "run";
  return (
    <>
      <h2>Compare</h2>
      <Switch
        label="What to compare"
        choices={
          finished.length > 1
            ? [
                { value: "run", title: "One run" },
                { value: "tiers", title: "Tiers × overlays" },
              ]
            : []
        }
        value={shown}
        onChoose={(value) => keep({ part: value === "tiers" ? "tiers" : "run" })}
      />
      {shown === "tiers" ? (
        <TiersGrid />
      ) : (
        <>
          <RunPicker />
          {run ? <OneRun key={run.run_id} run={run} /> : null}
        </>
      )}
    </>
  );
}
