/** What is behind a point: one trial with everything that was kept of it. */
import { useEffect } from "preact/hooks";
import type { TrialFacts } from "../../../contract/evidence";
import { useQuery } from "../../state/query";
import { currentRun, currentTrial } from "../../state/state";
import { ProblemBox } from "../../ui/problem";
import { RunPicker, useRun } from "../../ui/run-picker";
import { TrialDetails } from "./details";
import { TrialList } from "./list";

export function View() {
  const run = useRun();
  const trial = currentTrial.value;
  const asked = useQuery("trial", trial === null ? null : { trial });
  const facts = asked.rows?.[0];
  useBelonging(facts);
  return (
    <>
      <h2>Evidence</h2>
      <RunPicker />
      {run ? (
        <div class="evidence">
          <TrialList key={run.run_id} run={run} chosen={trial} onChoose={(id) => (currentTrial.value = id)} />
          <section aria-label="The chosen trial" class="trial">
            {asked.state === "failed" ? <ProblemBox problem={asked.problem} /> : null}
            {asked.state === "ready" && !facts ? (
              <p class="empty">This file has no trial {trial}. Choose one from the list.</p>
            ) : null}
            {facts ? <TrialDetails key={facts.trial_id} facts={facts} run={run} /> : null}
          </section>
        </div>
      ) : null}
    </>
  );
}

/** A trial brings its run along; another run that is chosen leaves the trial behind. */
function useBelonging(facts: TrialFacts | undefined): void {
  useEffect(() => {
    // What a person chose since the trial was drawn left that trial behind.
    if (facts && currentTrial.value === facts.trial_id) currentRun.value = facts.run_id;
  }, [facts?.trial_id, facts?.run_id]);
  useEffect(() => {
    if (facts && currentRun.value !== null && currentRun.value !== facts.run_id) currentTrial.value = null;
  }, [currentRun.value]);
}
