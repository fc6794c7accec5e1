/** Latency: how long requests take, by percentile, by size, and as a distribution; within a node and between nodes. */
import { useMemo } from "preact/hooks";
import type { LatencyBin, LatencyQuantile, LatencyTrial } from "../../../contract/latency";
import type { RunRow } from "../../../contract/run";
import type { Figure } from "../../charts/figure";
import { heightFor, MANY } from "../../charts/panels";
import { countsOfTrials } from "../../lib/lost";
import { useQuery } from "../../state/query";
import { filterOf, keepFilter, settings, showTrial } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choices } from "../../ui/choices";
import { ElsewhereMeasured } from "../../ui/elsewhere";
import { Lost } from "../../ui/lost";
import { RunPicker, useRun } from "../../ui/run-picker";
import { Unusable } from "../../ui/unusable";
import { ecdfFigure } from "./ecdf";
import { percentilesFigure } from "./percentiles";
import { blocksOf, type Latency, latencyOf, panelsOf } from "./points";
import { sizesFigure } from "./size";
import { valuesFigure } from "./values";

const NONE =
  "This run measured no latency. ./task lab:weave SUITE=deitcher-2016 measures it by request size, between nodes and within one; quick and full do too.";

const LOOPS = {
  closed:
    "Closed loop: the next request waits for the answer to the last, so that a stall of a second is one slow request among thousands. Of high percentiles believe an open loop's (sockperf).",
  open: "Open loop: requests are sent on a schedule, as users do, so that every one that falls into a stall shows it.",
};

export function View() {
  const run = useRun();
  const parameters = run ? { run: run.run_id } : null;
  const trials = useQuery("latency_trials", parameters);
  const quantiles = useQuery("latency_quantiles", parameters);
  return (
    <>
      <h2>Latency</h2>
      <RunPicker />
      {run && trials.state === "ready" && trials.rows.length === 0 ? (
        <ElsewhereMeasured question="latency_runs" empty={NONE} />
      ) : run ? (
        <Rows asked={trials} empty={NONE}>
          {(rows) =>
            quantiles.state === "ready" ? (
              <Chosen run={run} trials={rows} quantiles={quantiles.rows} />
            ) : (
              <Rows asked={quantiles} empty="">
                {() => null}
              </Rows>
            )
          }
        </Rows>
      ) : null}
    </>
  );
}

interface Measured {
  run: RunRow;
  trials: LatencyTrial[];
  quantiles: LatencyQuantile[];
}

/** The choices, and of what was chosen the bins, where there are any. */
function Chosen({ run, trials, quantiles }: Measured) {
  const kept = filterOf<{ wanted: Record<string, string> }>("latency", { wanted: {} });
  const latency = useMemo(() => latencyOf(trials, run, kept.wanted), [trials, run, kept.wanted]);
  const { tool, hasBins } = latency.probe;
  const bins = useQuery("latency_bins", hasBins ? { run: run.run_id, tool } : null);
  return (
    <>
      <div class={latency.choices.some(({ options }) => options.length > 1) ? "filters" : ""}>
        <Choices
          choices={latency.choices}
          onChoose={(name, key) => keepFilter("latency", { wanted: { ...kept.wanted, [name]: key } })}
        />
      </div>
      {hasBins && bins.state !== "ready" ? (
        <Rows asked={bins} empty="">
          {() => null}
        </Rows>
      ) : (
        <Plots run={run} latency={latency} quantiles={quantiles} bins={bins.rows ?? []} />
      )}
      <Unusable trials={latency.rows} />
    </>
  );
}

interface Shown {
  run: RunRow;
  latency: Latency;
  quantiles: LatencyQuantile[];
  bins: LatencyBin[];
}

function Plots({ run, latency, quantiles, bins }: Shown) {
  const units = settings.value;
  const [figures, names, blocks, single] = useMemo((): [Figure[], number, number, boolean] => {
    const panels = panelsOf(latency, run, quantiles, bins, latency.size);
    if (panels.every(({ series }) => series.length === 0)) return [[], 0, 0, false];
    const ofAll = panelsOf(latency, run, quantiles, bins, null);
    const hasPercentiles = panels.some(({ series }) =>
      series.some(({ profiles }) => profiles.some(({ points }) => points.length > 0)),
    );
    return [
      [
        hasPercentiles ? percentilesFigure(latency, panels, units) : valuesFigure(latency, panels, units),
        ...(hasPercentiles && latency.sizes.length > 1 ? [sizesFigure(latency, ofAll, units)] : []),
        ...(latency.probe.hasBins ? [ecdfFigure(latency, panels, bins, units)] : []),
      ],
      new Set(panels.flatMap(({ series }) => series.map(({ variant }) => variant.key))).size,
      blocksOf(panels),
      !hasPercentiles,
    ];
  }, [run, latency, quantiles, bins, units.rateUnit, units.timeUnit]);
  const openTrial = (trial: unknown) => showTrial(trial as number);
  // Where nothing was measured, nothing can be said of how.
  if (!figures.length)
    return (
      <Lost
        counts={countsOfTrials(ofSize(latency))}
        of="this choice"
        otherwise="No trial of this choice gave a value."
      />
    );
  return (
    <>
      <p class="quiet">{wordsOf(latency, blocks, single)}</p>
      {figures.map((figure, at) => (
        <Chart
          key={at}
          figure={figure}
          onPoint={openTrial}
          height={single ? heightFor(names, 230, 24) : heightFor(names > MANY ? names : 0, 380, 21)}
        />
      ))}
    </>
  );
}

const ofSize = ({ rows, size }: Latency): LatencyTrial[] =>
  rows.filter((row) => size === "" || String(row.size ?? "") === size);

function wordsOf({ probe, sizes }: Latency, blocks: number, single: boolean): string {
  return [
    ...(probe.loop ? [LOOPS[probe.loop]] : []),
    probe.metric === "latency_one_way"
      ? "One-way latency is half a round trip: clocks of two nodes are never compared."
      : "",
    probe.hasBins
      ? "Every request was kept, in bins 1.2 % wide; the share of requests adds the bins of all trials of a variant."
      : !single
        ? `${probe.tool} keeps percentiles only, each of one trial; for the distribution take sockperf or ping (SUITE=full).`
        : `${probe.tool} gives one value for a trial, and no percentiles.`,
    blocks > 1
      ? single
        ? "A dot is a block, the stroke their median."
        : "Thin: each trial. Thick: the median over blocks of the trials' percentiles, which is no percentile of all requests."
      : "One block: nothing is claimed from it.",
    sizes.length === 1 && probe.tool === "netperf" ? "One request size here; SUITE=deitcher-2016 takes eight." : "",
  ]
    .filter(Boolean)
    .join(" ");
}
