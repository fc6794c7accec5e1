/** Trials that a plot cannot show, by name. */
import type { VariantColumns } from "../../contract/columns";
import { clean } from "../lib/text";
import { variantName } from "../lib/variants";
import { showTrial } from "../state/state";

interface Trial extends VariantColumns {
  trial_id: number;
  benchmark: string;
  block: number;
  status: "ok" | "failed" | "void";
  reason: string | null;
}

const MOST = 20;

export function Unusable({ trials }: { trials: readonly Trial[] }) {
  const bad = trials.filter(({ status }) => status !== "ok");
  if (!bad.length) return null;
  const count = (status: Trial["status"]): number => bad.filter((trial) => trial.status === status).length;
  const words = [
    ...(count("failed") ? [`${count("failed")} failed`] : []),
    ...(count("void") ? [`${count("void")} withdrawn (void)`] : []),
  ];
  return (
    <section class="unusable" aria-label="Trials that are not drawn">
      <h3>Not drawn: {words.join(", ")}</h3>
      <ul>
        {bad.slice(0, MOST).map((trial) => (
          <li key={trial.trial_id}>
            <button type="button" class="link" onClick={() => showTrial(trial.trial_id)}>
              {variantName(trial)}, {clean(trial.benchmark, 60)}, block {trial.block}
            </button>{" "}
            {trial.status}: {clean(trial.reason ?? "no reason was stored", 300)}
          </li>
        ))}
      </ul>
      {bad.length > MOST ? <p class="quiet">and {bad.length - MOST} more</p> : null}
    </section>
  );
}
