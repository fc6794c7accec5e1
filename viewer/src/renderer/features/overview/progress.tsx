/** How far a running run is, what it measures now, and the newest trials. */
import type { RecentRow } from "../../../contract/overview";
import type { RunRow } from "../../../contract/run";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { duration, scaleOf, time, withUnit } from "../../lib/units";
import { useQuery } from "../../state/query";
import { settings, showTrial } from "../../state/state";
import { Copied } from "../../ui/copied";
import { Text } from "../../ui/text";
import { elapsed, mayBeKilled, silence } from "./run-state";

export function Progress({ run, now }: { run: RunRow; now: number }) {
  const recent = useQuery("run_recent", { run: run.run_id });
  const pace = useQuery("run_pace", { run: run.run_id });
  const each = pace.rows?.[0]?.seconds ?? null;
  const left = each === null ? null : (run.trials_planned - run.trials_done) * each;
  const rows = recent.rows ?? [];
  const running = rows.find(({ status }) => status === "running");
  return (
    <div class="progress-box" role="status" aria-live="off">
      <p>
        <progress max={run.trials_planned} value={run.trials_done} aria-label="Trials done" />{" "}
        <strong>
          {run.trials_done} of {run.trials_planned} trials
        </strong>
        , {duration(elapsed(run, now))} so far
        {mayBeKilled(run, now)
          ? ""
          : left === null
            ? "; too early to say how long the rest takes"
            : `; about ${duration(left)} left, at ${duration(each)} a trial with all that comes before it`}
        . Last stored {duration(silence(run, now))} ago.
      </p>
      <p>
        {running ? (
          <>
            {mayBeKilled(run, now) ? "Was measuring " : "Measures now: "}
            <strong>{clean(running.benchmark, 60)}</strong> over <strong>{variantWords(running)}</strong>, block{" "}
            {running.block}
            {running.warmup ? ", a warm-up" : ""}, since {time(running.started_at).slice(11)}.
          </>
        ) : (
          "Between trials: it prepares an overlay, or checks the profile."
        )}
      </p>
      <Newest rows={rows.filter(({ status }) => status !== "running").slice(0, 5)} />
    </div>
  );
}

function Newest({ rows }: { rows: RecentRow[] }) {
  if (rows.length === 0) return null;
  return (
    <Copied>
      <table>
        <thead>
          <tr>
            {["Newest trials", "Overlay", "Block", "Status", "Value", "Took"].map((title) => (
              <th scope="col">{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.trial_id}>
              <td>
                <button type="button" class="link" onClick={() => showTrial(row.trial_id)}>
                  {clean(row.benchmark, 60)}
                </button>
              </td>
              <td>{variantWords(row)}</td>
              <td class="number">{row.block}</td>
              <td title={row.reason ? clean(row.reason, 300) : undefined}>{row.status}</td>
              <td>
                {row.metric && row.unit ? (
                  `${withUnit(row.value, scaleOf(row.unit, [row.value], settings.value))} ${row.metric.replace(/_/g, " ")}`
                ) : (
                  <Text value={row.reason} most={60} />
                )}
              </td>
              <td class="number">{row.duration === null ? "–" : `${row.duration.toFixed(1)} s`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Copied>
  );
}
