/** Tools that give one value for a trial: a dot each, and the median of the blocks. */
import type { Data } from "plotly.js";
import { colour, type Figure, plain, symbol } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { namesAxis, sideBySide } from "../../charts/panels";
import { counted } from "../../lib/counts";
import type { Cell } from "../../lib/grid";
import { type Scale, scaleOf, type Units, withUnit } from "../../lib/units";
import { axisTitle, shortName } from "./percentiles";
import { blocksOf, type Latency, overBlocks, type Panel, type Series } from "./points";

export function valuesFigure(latency: Latency, panels: readonly Panel[], units: Units): Figure {
  const all = panels.flatMap(({ series }) =>
    series.flatMap(({ profiles }) => profiles.map(({ trial }) => trial.value)),
  );
  const scale = scaleOf("s", all, units);
  const variants = new Map(
    panels.flatMap(({ series }) => series.map(({ variant }) => [variant.key, variant] as const)),
  );
  const lines = new Map([...variants.keys()].map((key, line) => [key, line]));
  return {
    ...sideBySide(
      panels.map(({ title, series }) => ({
        title,
        data: series.flatMap((each) => {
          const line = lines.get(each.variant.key) as number;
          return [dots(each, line, scale, units), ...median(each, line, scale)];
        }),
      })),
      {
        title: { text: axisTitle(latency, scale.unit) },
        ...logAxis(all.map((value) => value && value / scale.factor)),
      },
      namesAxis([...variants.values()].map(({ name }) => name)),
      { showlegend: false },
    ),
    title: `${shortName(latency)} (${scale.unit}), ${latency.probe.name}${latency.sizeWords}, ${counted(blocksOf(panels), "block")}`,
    grid: {
      columns: [{ name: "between" }, { name: "variant" }, { name: "block" }, { name: "latency", unit: "s" }],
      rows: panels.flatMap(({ title, series }) =>
        series.flatMap(({ variant, profiles }) =>
          profiles.map(({ trial }): Cell[] => [title, variant.name, trial.block, trial.value]),
        ),
      ),
      points: panels.flatMap(({ series }) =>
        series.flatMap(({ profiles }) => profiles.map(({ trial }) => trial.trial_id)),
      ),
    },
    summary: panels
      .flatMap(({ title, series }) =>
        series.map(({ variant, profiles }) => {
          const { value, blocks } = overBlocks(profiles, ({ trial }) => trial.value);
          return `${title}, ${variant.name}: ${withUnit(value, scaleOf("s", [value], units))}, median of ${counted(blocks, "block")}`;
        }),
      )
      .join("; "),
  };
}

function dots({ variant, profiles }: Series, line: number, { factor }: Scale, units: Units): Partial<Data> {
  const shown = profiles.filter(({ trial }) => trial.value !== null);
  return {
    type: "scatter",
    mode: "markers",
    name: plain(variant.name),
    legendgroup: String(variant.at),
    x: shown.map(({ trial }) => (trial.value as number) / factor),
    y: shown.map(() => line),
    customdata: shown.map(({ trial }) => trial.trial_id),
    text: shown.map(({ trial }) =>
      [
        `<b>${plain(variant.name)}</b>, block ${trial.block}`,
        withUnit(trial.value, scaleOf("s", [trial.value], units)),
        "click: its evidence",
      ].join("<br>"),
    ),
    hovertemplate: "%{text}<extra></extra>",
    marker: { color: colour(variant.at), symbol: symbol(variant.at), size: 9, opacity: 0.8 },
  } as Partial<Data>;
}

function median({ variant, profiles }: Series, line: number, { factor }: Scale): Partial<Data>[] {
  const { value, blocks } = overBlocks(profiles, ({ trial }) => trial.value);
  if (value === null || blocks < 2) return [];
  return [
    {
      type: "scatter",
      mode: "markers",
      showlegend: false,
      hoverinfo: "skip",
      x: [value / factor],
      y: [line],
      marker: {
        symbol: "line-ns-open",
        size: 20,
        color: colour(variant.at),
        line: { width: 2.5, color: colour(variant.at) },
      },
    } as Partial<Data>,
  ];
}
