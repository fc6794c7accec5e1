/** The highest rate reached, and the highest load offered that lost no more than a share: by variant. */
import type { Data, Layout } from "plotly.js";
import type { LoadTrial } from "../../../contract/load";
import { colour, type Figure, plain, symbol } from "../../charts/figure";
import { namesAxis } from "../../charts/panels";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { number, scaleOf, type Units, withUnit } from "../../lib/units";
import { againstHost, contradicts, type Load, type LoadSeries, percent } from "./points";

export interface HighestOptions {
  normalised: boolean;
  /** Largest share that may be lost. */
  share: number;
  units: Units;
}

export interface Highest {
  /** Largest median goodput over the loads, and what was lost and offered there. */
  goodput: number;
  loss: number | null;
  offered: number | null;
  blocks: number;
}

/** Among the medians over blocks. Null where there are none yet. */
export function highest({ medians }: LoadSeries): Highest | null {
  let found: Highest | null = null;
  for (const at of medians.values()) {
    const goodput = at.goodput?.median ?? null;
    if (goodput === null || (found && found.goodput >= goodput)) continue;
    found = {
      goodput,
      loss: at.loss?.median ?? null,
      offered: at.offered?.median ?? null,
      blocks: at.goodput?.blocks ?? 0,
    };
  }
  return found;
}

/** The highest median load really offered of which no more than that share was lost (median), and the rest arrived. */
export function carried({ medians }: LoadSeries, share: number): number | null {
  const loads = [...medians.values()].flatMap((at) => {
    const offered = at.offered?.median ?? null;
    const loss = at.loss?.median ?? null;
    const goodput = at.goodput?.median ?? null;
    const holds = loss !== null && loss <= share && !contradicts({ offered, goodput, loss });
    return holds && offered !== null ? [offered] : [];
  });
  return loads.length ? Math.max(...loads) : null;
}

/** Each block's trial that delivered most. */
function best(load: Load, { trials }: LoadSeries, normalised: boolean): LoadTrial[] {
  const blocks = new Map<number, LoadTrial>();
  for (const trial of trials) {
    if (trial.goodput === null || (normalised && againstHost(load, "goodput", trial) === null)) continue;
    const before = blocks.get(trial.block);
    if (!before || (before.goodput as number) < trial.goodput) blocks.set(trial.block, trial);
  }
  return [...blocks.values()].sort((a, b) => a.block - b.block);
}

/** The largest goodput of a trial's block that the host reached. */
function hostBest(load: Load, block: number): number | null {
  const host = load.series.find(({ variant }) => variant.isHost);
  return host ? (best(load, host, false).find((trial) => trial.block === block)?.goodput ?? null) : null;
}

export function highestFigure(load: Load, options: HighestOptions): Figure {
  const { normalised, share } = options;
  const drawn = load.series.filter(({ variant }) => !normalised || !variant.isHost);
  const found = drawn.map((series, line) => ({
    series,
    line,
    highest: highest(series),
    carried: carried(series, share),
    blocks: best(load, series, normalised),
  }));
  const values = found.flatMap(({ highest: reached, carried: most, blocks }) => [
    reached?.goodput ?? null,
    most,
    ...blocks.map(({ goodput }) => goodput),
  ]);
  const scale = normalised ? { unit: "", factor: 1 } : scaleOf("bit/s", values, options.units);
  const shown = (trial: LoadTrial): number | null => {
    if (!normalised) return (trial.goodput as number) / scale.factor;
    const host = hostBest(load, trial.block);
    return host ? (trial.goodput as number) / host : null;
  };
  const most = normalised
    ? Math.max(1, ...found.flatMap(({ blocks }) => blocks.map((trial) => shown(trial) ?? 0)))
    : Math.max(0, ...values.map((value) => value ?? 0)) / scale.factor || 1;
  const data: Partial<Data>[] = found.map(
    ({ series: { variant }, line, blocks }) =>
      ({
        type: "scatter",
        mode: "markers",
        name: plain(variant.name),
        showlegend: false,
        x: blocks.map(shown),
        y: blocks.map(() => line),
        customdata: blocks.map(({ trial_id }) => trial_id),
        text: blocks.map((trial) => hover(variant.name, trial, options)),
        hovertemplate: "%{text}<extra></extra>",
        marker: { color: colour(variant.at), symbol: symbol(variant.at), size: 8, opacity: 0.75 },
      }) as Partial<Data>,
  );
  if (!normalised) data.push(...medianMarks(found, share, scale, END * most));
  return {
    title: normalised
      ? `Highest rate reached as ratio to the host's of the same block, ${counted(load.blocks, "block")}`
      : `Highest rate reached (${scale.unit}) and highest load with at most ${percent(share)} lost, ${counted(load.blocks, "block")}`,
    data,
    layout: {
      xaxis: {
        title: { text: normalised ? "ratio to the host's highest" : `goodput, offered load (${scale.unit})` },
        range: [0, (normalised ? 1.1 : END) * most],
        zeroline: false,
      },
      yaxis: namesAxis(drawn.map(({ variant }) => variant.name)),
      margin: { t: 8, r: 24, b: 48, l: 64 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      showlegend: !normalised && found.some(({ highest: reached }) => reached !== null),
      hovermode: "closest",
    } as Partial<Layout>,
    grid: gridOf(load, found, share, normalised, shown),
    summary: found
      .flatMap(({ series: { variant }, highest: reached, carried: most }) => {
        if (!reached) return [];
        const rate = (value: number | null) => withUnit(value, scaleOf("bit/s", [value], options.units));
        return [
          `${variant.name} delivered at most ${rate(reached.goodput)} with ${percent(reached.loss)} lost; ${most === null ? `no load lost ${percent(share)} or less` : `${rate(most)} offered lost ${percent(share)} or less`}`,
        ];
      })
      .join(". "),
  };
}

/** line: its place on the axis of names. */
type Found = { series: LoadSeries; line: number; highest: Highest | null; carried: number | null; blocks: LoadTrial[] };

/** The axis goes on beyond the largest value by this much: what was lost there stands at its end. */
const END = 1.4;

/** A stroke at the largest median with the loss there, and an open diamond at the highest load that got through. */
function medianMarks(
  found: readonly Found[],
  share: number,
  { factor }: { factor: number },
  end: number,
): Partial<Data>[] {
  const reached = found.filter(({ highest: at }) => at !== null);
  const through = found.filter(({ carried: at }) => at !== null);
  const lines = (of: readonly Found[]) => of.map(({ line }) => line);
  const neutral = "#7a828c";
  return [
    {
      type: "scatter",
      mode: "markers",
      name: "highest median goodput, with the loss there",
      hoverinfo: "skip",
      x: reached.map(({ highest: at }) => (at as Highest).goodput / factor),
      y: lines(reached),
      marker: { symbol: "line-ns-open", size: 20, color: neutral, line: { width: 2.5, color: neutral } },
    } as Partial<Data>,
    {
      type: "scatter",
      mode: "text",
      showlegend: false,
      hoverinfo: "skip",
      x: reached.map(() => end),
      y: lines(reached),
      text: reached.map(({ highest: at }) => `${percent((at as Highest).loss)} lost `),
      textposition: "middle left",
    } as Partial<Data>,
    ...(through.length
      ? [
          {
            type: "scatter",
            mode: "markers",
            name: `highest offered load with at most ${percent(share)} lost`,
            hoverinfo: "x",
            x: through.map(({ carried: at }) => (at as number) / factor),
            y: lines(through),
            marker: { symbol: "diamond-open", size: 13, color: neutral, line: { width: 2, color: neutral } },
          } as Partial<Data>,
        ]
      : []),
  ];
}

function hover(name: string, trial: LoadTrial, { units }: HighestOptions): string {
  const rate = (value: number | null) => withUnit(value, scaleOf("bit/s", [value], units));
  return [
    `<b>${plain(name)}</b>, block ${trial.block}: its highest`,
    `delivered ${rate(trial.goodput)}`,
    `lost ${percent(trial.loss)}`,
    `offered ${rate(trial.offered)}; asked ${rate(trial.asked)}`,
    "click: its evidence",
  ].join("<br>");
}

function gridOf(
  load: Load,
  found: readonly Found[],
  share: number,
  normalised: boolean,
  shown: (trial: LoadTrial) => number | null,
): Figure["grid"] {
  if (normalised) {
    const rows = found.flatMap(({ series: { variant }, blocks }) =>
      blocks.map((trial): Cell[] => [
        variant.name,
        trial.block,
        shown(trial),
        trial.goodput,
        hostBest(load, trial.block),
      ]),
    );
    return {
      columns: [
        { name: "variant" },
        { name: "block" },
        { name: "ratio to host" },
        { name: "highest goodput", unit: "bit/s" },
        { name: "host's highest", unit: "bit/s" },
      ],
      rows,
      points: found.flatMap(({ blocks }) => blocks.map(({ trial_id }) => trial_id)),
    };
  }
  return {
    columns: [
      { name: "variant" },
      { name: "highest median goodput", unit: "bit/s" },
      { name: "loss there", unit: "ratio" },
      { name: "offered there", unit: "bit/s" },
      { name: `highest offered with at most ${number(share * 100)} % lost`, unit: "bit/s" },
      { name: "blocks" },
    ],
    rows: found.map(({ series: { variant }, highest: at, carried: most }): Cell[] => [
      variant.name,
      at?.goodput ?? null,
      at?.loss ?? null,
      at?.offered ?? null,
      most,
      at?.blocks ?? null,
    ]),
  };
}
