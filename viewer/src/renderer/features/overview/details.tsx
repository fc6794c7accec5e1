/** What one run says: progress while it runs, verdicts, evidence, checks, troubles, and where it came from. */

import type { CheckRow } from "../../../contract/columns";
import type { TroubleRow, VerdictRow } from "../../../contract/overview";
import type { RunRow } from "../../../contract/run";
import { ACCELERATORS } from "../../../contract/terms";
import { VIEWS, type ViewId } from "../../../contract/views";
import { EVIDENCE } from "../../lib/evidence-kinds";
import { countsOf } from "../../lib/lost";
import { tierWords, variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { time } from "../../lib/units";
import { useQuery } from "../../state/query";
import { settings, show, showTrial } from "../../state/state";
import { Rows } from "../../ui/asked";
import { CheckTable } from "../../ui/check-table";
import { Lost } from "../../ui/lost";
import { Text } from "../../ui/text";
import { Progress } from "./progress";
import { Provenance } from "./provenance";
import { stateAdvice } from "./run-state";
import { verdictSentence } from "./verdict";

const of = (...ids: ViewId[]) => VIEWS.filter(({ id }) => ids.includes(id));
const TRIAL_VIEWS = of("compare", "load", "latency", "time", "evidence");
const CHECK_VIEWS = of("tiers");

export function RunDetails({ run, now }: { run: RunRow; now: number }) {
  const advice = stateAdvice(run, now);
  return (
    <section class="details" aria-label="The chosen run">
      <h2>
        {[run.suite, run.profile, run.cluster].map((name) => clean(name, 60)).join(" · ")}{" "}
        <small class="quiet">{time(run.started_at ?? run.created_at)}</small>
      </h2>
      <p class="quiet">
        {tierWords(run) ? `Stands for ${tierWords(run)}. ` : ""}On {clean(run.machine, 160)}:{" "}
        {ACCELERATORS[run.accelerator] ?? run.accelerator} ({run.accelerator}).
      </p>
      {advice ? (
        <p class="note" role="note">
          {advice}
        </p>
      ) : null}
      <p class="tools">
        {(run.trials_planned ? TRIAL_VIEWS : CHECK_VIEWS).map(({ id, title }) => (
          <button type="button" onClick={() => show(id)}>
            {title}
          </button>
        ))}
      </p>
      {run.state === "running" ? <Progress run={run} now={now} /> : null}
      <Verdicts run={run} />
      <Troubles run={run} />
      <Counts run={run} />
      <Checks run={run} />
      <Provenance run={run} />
    </section>
  );
}

function Verdicts({ run }: { run: RunRow }) {
  const asked = useQuery("run_verdicts", { run: run.run_id });
  if (run.trials_planned === 0) return null;
  return (
    <Rows
      asked={asked}
      empty={
        <Lost
          counts={countsOf(run)}
          of="this run"
          otherwise={
            run.state === "running"
              ? "No block is finished yet."
              : "There is no comparison: no block was finished, or ./task results:refresh has yet to make it."
          }
        />
      }
    >
      {(rows) => <Verdict rows={rows} />}
    </Rows>
  );
}

const isHost = (row: VerdictRow): boolean => row.overlay === "host";

function Verdict({ rows }: { rows: VerdictRow[] }) {
  const [first] = rows;
  const places = [...new Set(rows.map(({ place }) => place))];
  return (
    <>
      <h3>
        What it says of {first?.metric.replace(/_/g, " ")} ({clean(first?.benchmark ?? "", 60)})
      </h3>
      {places.map((place) => (
        <>
          {place === null ? null : (
            <p class="quiet">
              <Text value={place} />
            </p>
          )}
          <ul class="verdicts">
            {rows
              .filter((row) => row.place === place)
              .map((row) => (
                <li class={isHost(row) ? "quiet" : ""}>
                  <strong>{variantWords(row)}</strong>: {verdictSentence(row, settings.value)}
                </li>
              ))}
          </ul>
        </>
      ))}
    </>
  );
}

function Troubles({ run }: { run: RunRow }) {
  const lost = run.trials_failed + run.trials_void;
  const asked = useQuery("run_troubles", lost ? { run: run.run_id } : null);
  if (!lost) return run.trials_done ? <p class="quiet">No trial failed, none is void.</p> : null;
  return (
    <>
      <h3>
        {[run.trials_failed ? `${run.trials_failed} failed` : "", run.trials_void ? `${run.trials_void} void` : ""]
          .filter(Boolean)
          .join(", ")}
        : no result in any plot
      </h3>
      <Rows asked={asked} empty="">
        {(rows) => (
          <ul>
            {rows.map((row) => (
              <Trouble row={row} />
            ))}
          </ul>
        )}
      </Rows>
    </>
  );
}

const Trouble = ({ row }: { row: TroubleRow }) => (
  <li>
    <strong>{row.status}</strong>, {variantWords(row)}, {clean(row.benchmark, 60)}
    {row.trials > 1 ? `, ${row.trials} trials` : ""}: <Text value={row.reason} />{" "}
    <button type="button" class="link" onClick={() => showTrial(row.first_trial)}>
      Evidence
    </button>
  </li>
);

function Counts({ run }: { run: RunRow }) {
  const asked = useQuery("run_evidence", { run: run.run_id });
  if (asked.state !== "ready" || asked.rows.length === 0) return null;
  const taken = asked.rows.reduce((sum, row) => sum + row.taken, 0);
  const held = asked.rows.reduce((sum, row) => sum + row.held, 0);
  return (
    <>
      <h3>
        Evidence:{" "}
        {held === taken ? `all ${taken} pieces held` : `${held} of ${taken} pieces held, ${taken - held} did not`}
      </h3>
      <ul class="counts">
        {asked.rows.map((row) => (
          <li class={row.held < row.taken ? "bad" : ""} title={EVIDENCE[row.kind]}>
            {clean(row.kind, 40)} {row.held} of {row.taken}
          </li>
        ))}
      </ul>
    </>
  );
}

function Checks({ run }: { run: RunRow }) {
  const asked = useQuery("run_checks", { run: run.run_id });
  if (asked.state !== "ready" || asked.rows.length === 0) return null;
  const count = (verdict: CheckRow["verdict"]): number => asked.rows.filter((row) => row.verdict === verdict).length;
  const words = [
    `${count("pass")} passed`,
    count("fail") ? `${count("fail")} failed` : "",
    count("not-applicable") ? `${count("not-applicable")} not applicable here` : "",
  ].filter(Boolean);
  return (
    <details open={count("fail") > 0}>
      <summary>
        <h3>
          Checks of the profile {clean(run.profile, 40)}: {words.join(", ")}
        </h3>
      </summary>
      <CheckTable rows={asked.rows} />
    </details>
  );
}
