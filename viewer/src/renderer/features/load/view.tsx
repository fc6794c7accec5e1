/** Offered load: what arrives, what is lost and how unevenly, by the UDP load that was sent. */
import { useMemo } from "preact/hooks";
import type { LoadMedian, LoadTrial } from "../../../contract/load";
import type { RunRow } from "../../../contract/run";
import { heightFor, MANY } from "../../charts/panels";
import { countsOfTrials } from "../../lib/lost";
import { scaleOf, withUnit } from "../../lib/units";
import { useQuery } from "../../state/query";
import { filterOf, keepFilter, settings, showTrial } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choices } from "../../ui/choices";
import { ElsewhereMeasured } from "../../ui/elsewhere";
import { Lost } from "../../ui/lost";
import { RunPicker, useRun } from "../../ui/run-picker";
import { Unusable } from "../../ui/unusable";
import { loadFigure } from "./figure";
import { highestFigure } from "./highest";
import type { LossScale } from "./loss-axis";
import { contradicts, isOff, type Load, loadOf, OFF } from "./points";

interface Kept {
  wanted: Record<string, string>;
  normalised: boolean;
  rateAxis: "log" | "linear";
  lossScale: LossScale;
  share: number;
}

const KEPT: Kept = { wanted: {}, normalised: false, rateAxis: "log", lossScale: "whole", share: 0.01 };
const LOSS_SCALES: [LossScale, string][] = [
  ["whole", "0 to 100 %"],
  ["zoomed", "up to the largest"],
  ["small", "small losses spread out"],
];
const SHARES = [0.001, 0.01, 0.05];
const NONE =
  "This run sent no UDP at a rate asked for. ./task lab:weave SUITE=skybet-2017 measures that, between three zones; weave-vs-flannel-2016 and full do too.";

export function View() {
  const run = useRun();
  const parameters = run ? { run: run.run_id } : null;
  const trials = useQuery("load_trials", parameters);
  const medians = useQuery("load_medians", parameters);
  return (
    <>
      <h2>Offered load</h2>
      <RunPicker />
      {run && trials.state === "ready" && trials.rows.length === 0 ? (
        <ElsewhereMeasured question="load_runs" empty={NONE} />
      ) : run ? (
        <Rows asked={trials} empty={NONE}>
          {(rows) =>
            medians.state === "ready" ? (
              <Plots run={run} trials={rows} medians={medians.rows} />
            ) : (
              <Rows asked={medians} empty="">
                {() => null}
              </Rows>
            )
          }
        </Rows>
      ) : null}
    </>
  );
}

function Plots({ run, trials, medians }: { run: RunRow; trials: LoadTrial[]; medians: LoadMedian[] }) {
  const kept = filterOf<Kept>("load", KEPT);
  const set = (part: Partial<Kept>) => keepFilter("load", { ...kept, ...part });
  const units = settings.value;
  const load = useMemo(
    () => loadOf(trials, medians, run, kept.wanted, (rate) => withUnit(rate, scaleOf("bit/s", [rate], units))),
    [trials, medians, run, kept.wanted],
  );
  const hasOthers =
    load.series.some(({ variant }) => variant.isHost) && load.series.some(({ variant }) => !variant.isHost);
  const normalised = kept.normalised && hasOthers;
  const figures = useMemo(() => {
    const options = { normalised, rateAxis: kept.rateAxis, lossScale: kept.lossScale, units };
    return [
      ...(["goodput", "loss", "jitter"] as const).map((metric) => loadFigure(load, { ...options, metric })),
      ...(load.against === "load" ? [highestFigure(load, { normalised, share: kept.share, units })] : []),
    ];
  }, [load, normalised, kept.rateAxis, kept.lossScale, kept.share, units.rateUnit, units.timeUnit]);
  const names = load.series.length;
  const openTrial = (trial: unknown) => showTrial(trial as number);
  return (
    <>
      <div class="filters">
        <Choices choices={load.choices} onChoose={(name, key) => set({ wanted: { ...kept.wanted, [name]: key } })} />
        {hasOthers ? (
          <label>
            Values{" "}
            <select
              value={normalised ? "ratio" : "absolute"}
              onChange={(event) => set({ normalised: event.currentTarget.value === "ratio" })}
            >
              <option value="absolute">absolute</option>
              <option value="ratio">against the host of the same block</option>
            </select>
          </label>
        ) : null}
        {normalised ? null : (
          <>
            <label>
              Goodput axis{" "}
              <select
                value={kept.rateAxis}
                onChange={(event) => set({ rateAxis: event.currentTarget.value as Kept["rateAxis"] })}
              >
                <option value="log">logarithmic</option>
                <option value="linear">linear</option>
              </select>
            </label>
            <label>
              Loss axis{" "}
              <select
                value={kept.lossScale}
                onChange={(event) => set({ lossScale: event.currentTarget.value as LossScale })}
              >
                {LOSS_SCALES.map(([key, words]) => (
                  <option value={key} key={key}>
                    {words}
                  </option>
                ))}
              </select>
            </label>
            {load.against === "load" ? (
              <label>
                Lost at most{" "}
                <select
                  value={String(kept.share)}
                  onChange={(event) => set({ share: Number(event.currentTarget.value) })}
                >
                  {SHARES.map((share) => (
                    <option value={String(share)} key={share}>
                      {share * 100} %
                    </option>
                  ))}
                </select>
              </label>
            ) : null}
          </>
        )}
      </div>
      {load.series.length ? <Words load={load} normalised={normalised} /> : null}
      {load.series.length ? (
        <div class={names > MANY ? "" : "chart-pairs"}>
          {figures.map((figure, at) => (
            <Chart
              key={at}
              figure={figure}
              onPoint={openTrial}
              height={names > MANY ? heightFor(names, 420, 21) : 330}
            />
          ))}
        </div>
      ) : (
        <Lost counts={countsOfTrials(load.rows)} of="this choice" otherwise="No trial of this choice gave a value." />
      )}
      <Unusable trials={load.rows} />
    </>
  );
}

/** How to read the plots, and what qualifies them. */
function Words({ load, normalised }: { load: Load & { rows: LoadTrial[] }; normalised: boolean }) {
  const short = load.rows.filter(contradicts).length;
  const off = load.rows.filter(isOff).length;
  return (
    <p class="quiet">
      {load.of}.{" "}
      {load.blocks === 1
        ? "One block: each dot is the only value."
        : "A dot is a block; lines go through the medians of blocks."}
      {off
        ? ` Hollow dots: what was really offered is more than ${OFF * 100} % off what was asked for (${off} of ${load.rows.length} trials); the sender could not, or would not, keep to it.`
        : ""}
      {short
        ? ` In ${short} trials less arrived than their loss says: tools count no loss after the last datagram that came. Such a load counts as not carried.`
        : ""}
      {normalised
        ? " Loss is a share and may be zero, so its difference to the host's is shown, without a median. Ratios are of the same load asked for: where dots are hollow, what was offered may differ too. Bars are intervals, from six blocks on."
        : load.against === "load"
          ? " The dotted line is where everything offered arrives."
          : ""}
      {load.series.every((series) => series.medians.size === 0) ? " No block has ended yet: no medians." : ""}
    </p>
  );
}
