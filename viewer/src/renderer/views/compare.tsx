/** Overlays × modes: of one run on one tier, or of all finished runs by tier. */
import { useQuery } from "../query";
import { RunPicker, useRun } from "../ui/run-picker";
import { Switch } from "./compare/choices";
import { keep, kept } from "./compare/kept";
import { OneRun } from "./compare/one-run";
import { TiersGrid } from "./compare/tiers-grid";

export function Compare() {
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
