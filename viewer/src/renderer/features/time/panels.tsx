/** One panel per metric, with what has to be said of them: what is left out, sliced, omitted, stalled. */
import { useMemo } from "preact/hooks";
import type { TimeBenchmarkRow, TimeBucketRow, TimePointRow, TimeTrialRow } from "../../../contract/time";
import { heightFor, MANY } from "../../charts/panels";
import { variantWords } from "../../lib/runs";
import { metricWords } from "../../lib/text";
import { number } from "../../lib/units";
import { type Placed, variantKey } from "../../lib/variants";
import { useQuery } from "../../state/query";
import { settings, showTrial } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { budget } from "./budget";
import { BANDS_MOST, bucketWords, stallsOf, timeFigure } from "./figure";

interface Panels {
  benchmark: TimeBenchmarkRow;
  what: string;
  trials: TimeTrialRow[];
  variants: readonly Placed[];
}

export function TimePanels({ benchmark, what, trials, variants }: Panels) {
  const { whole, sliced, leftOut, most, slices } = budget(trials);
  const points = useQuery("time_points", { whole: JSON.stringify(whole), sliced: JSON.stringify(sliced), slices });
  const buckets = useQuery("time_buckets", { trials: JSON.stringify([...whole, ...sliced]) });
  return (
    <Rows asked={points} empty="These trials have no interval any more.">
      {(rows) => (
        <>
          <Notes benchmark={benchmark} trials={trials} points={rows} leftOut={leftOut} slices={slices} most={most} />
          <Drawn what={what} trials={trials} variants={variants} points={rows} buckets={buckets.rows ?? NONE} />
          {buckets.rows?.length ? <Buckets rows={buckets.rows} trials={trials} /> : null}
        </>
      )}
    </Rows>
  );
}

const NONE: TimeBucketRow[] = [];

function Drawn({
  what,
  trials,
  variants,
  points,
  buckets,
}: Omit<Panels, "benchmark"> & { points: TimePointRow[]; buckets: TimeBucketRow[] }) {
  const { rateUnit, timeUnit } = settings.value;
  // The same objects as long as the same is shown: a figure is only drawn again when it is another one.
  const key = JSON.stringify([trials.map(({ trial_id, metric }) => [trial_id, metric]), variants]);
  const figures = useMemo(() => {
    const until = points.reduce((last, { t_end }) => Math.max(last, t_end), 0);
    return [...new Set(trials.map(({ metric }) => metric))].map((metric) => {
      const its = points.filter((point) => point.metric === metric);
      const of = trials.filter((trial) => trial.metric === metric);
      return timeFigure({
        what,
        metric,
        unit: of[0]?.unit ?? "1",
        points: its,
        trials: of,
        variants,
        buckets,
        until,
        settings: { rateUnit, timeUnit },
      });
    });
  }, [points, buckets, key, what, rateUnit, timeUnit]);
  const names = new Set(trials.map(variantKey)).size;
  return (
    <>
      {figures.map((figure, at) => (
        <Chart
          key={at}
          figure={figure}
          height={heightFor(names > MANY ? names : 0, figures.length > 1 ? 300 : 420, 21)}
          onPoint={(trial) => showTrial(Number(trial))}
        />
      ))}
    </>
  );
}

interface Noted {
  benchmark: TimeBenchmarkRow;
  trials: TimeTrialRow[];
  points: TimePointRow[];
  leftOut: number[];
  slices: number;
  most: number;
}

function tooMuch(leftOut: number[], blocks: number): string | null {
  if (leftOut.length === 0) return null;
  if (blocks === 1) return "Too much to read at once: some of its trials are left out. Choose fewer overlays.";
  const which = leftOut.length === 1 ? `block ${leftOut[0]} is` : `blocks ${leftOut[0]} to ${leftOut.at(-1)} are`;
  return `Too much to read at once: ${which} left out, in whole or in part. Choose one block, or fewer overlays.`;
}

function Notes({ benchmark, trials, points, leftOut, slices, most }: Noted) {
  const omit = Math.max(0, ...trials.map((trial) => trial.omit ?? 0));
  const stalls = stallsOf(points);
  const sliced = points.some(({ n }) => n > 1);
  const bands = new Set(points.map(({ trial_id }) => trial_id)).size <= BANDS_MOST;
  const notes = [
    tooMuch(leftOut, new Set(trials.map(({ block }) => block)).size),
    sliced
      ? `Trials with more than ${most} points are shown in up to ${slices} slices of time: the line is each slice's median${bands ? ", the band reaches from its smallest to its largest value." : ". Bands from its smallest to its largest value are drawn for fewer trials."}`
      : null,
    omit
      ? `The grey time is left out by ${benchmark.tool} itself: ${omit} s in which a connection gets up to speed.`
      : null,
    stalls ? `× marks ${stalls === 1 ? "the interval" : `${stalls} intervals`} in which nothing arrived.` : null,
    benchmark.whole_only
      ? `Known only for whole trials, so not drawn: ${benchmark.whole_only.split(",").map(metricWords).join(", ")}.`
      : null,
    "A broken line is time in which nothing was measured. A click on a line shows its trial.",
  ];
  return (
    <ul class="notes quiet">
      {notes
        .filter((note) => note !== null)
        .map((note) => (
          <li>{note}</li>
        ))}
    </ul>
  );
}

function Buckets({ rows, trials }: { rows: TimeBucketRow[]; trials: TimeTrialRow[] }) {
  const of = new Map(trials.map((trial) => [trial.trial_id, trial]));
  const share = (level: number | null, capacity: number): string =>
    level === null ? "–" : `${number(Math.max(0, level / capacity) * 100)} %`;
  const [first] = rows;
  if (!first) return null;
  return (
    <details>
      <summary>{bucketWords(first, settings.value)}</summary>
      <table>
        <thead>
          <tr>
            {["Trial", "Overlay", "Block", "Filled before", "Filled after"].map((title) => (
              <th scope="col">{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, 200).map((row) => {
            const trial = of.get(row.trial_id);
            return (
              <tr key={row.trial_id}>
                <td>
                  <button type="button" class="link" onClick={() => showTrial(row.trial_id)}>
                    {row.trial_id}
                  </button>
                </td>
                <td>{trial ? variantWords(trial) : "–"}</td>
                <td class="number">{trial?.block ?? "–"}</td>
                <td class="number">{share(row.before, row.capacity)}</td>
                <td class="number">{share(row.after, row.capacity)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </details>
  );
}
