/** Runs beside each other: what each has of every overlay, and how far the others moved from the first. */

import type { RunTableRow, RunValueRow } from "../../../contract/runs";
import type { Settings } from "../../../contract/settings";
import { colour, type Figure, plain, symbol } from "../../charts/figure";
import { blocksOfEach } from "../../lib/counts";
import { variantNames, variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { scaleOf } from "../../lib/units";
import {
  type Change,
  compare,
  hostOf,
  isHost,
  pairsOf,
  type Rules,
  series,
  type Variant,
  variantKey,
  worded,
} from "./compare";
import { median } from "./mann-whitney";

/** One run of the plot. behind: what a click on one of its points gives, for a trial. */
export interface Side {
  name: string;
  rows: readonly RunValueRow[];
  behind: (trial: number) => unknown;
}

/** One run held against the first. hindered: the two must not be compared, so that nothing is said of them. */
export interface Against {
  name: string;
  changes: Change[];
  rules: Rules;
  hindered: boolean;
}

export const changesOf = compare;

/** The verdict as it may be said of two runs: nothing where they are not to be compared, or below six blocks. */
export const changeWords = (change: Change, table: RunTableRow, hindered: boolean): string =>
  hindered
    ? "none: not to be compared"
    : change.estimate === null
      ? "no value in both"
      : change.interval === null
        ? "none below six blocks"
        : worded(change.word, table.metric, table.better);

export const whatOf = ({ benchmark, metric, place }: Pick<RunTableRow, "benchmark" | "metric" | "place">): string =>
  `${metric.replaceAll("_", " ")} (${[benchmark, place].filter(Boolean).join(", ")})`;

const offset = (at: number, of: number): number => (of < 2 ? 0 : (at / (of - 1) - 0.5) * 0.5);

const line = (x: number) =>
  ({
    type: "line",
    x0: x,
    x1: x,
    y0: 0,
    y1: 1,
    yref: "paper",
    line: { width: 1, color: "rgba(128,128,128,0.8)", dash: "dot" },
  }) as const;

const axis = (variants: readonly Variant[]) => ({
  tickvals: variants.map((_, at) => at),
  ticktext: variantNames(variants, 40).map((name) => plain(name)),
  range: [variants.length - 0.5, -0.5],
  zeroline: false,
});

/** Every block of every run: of ratios to the host where they mean something, else of the values. */
export function sideBySide(
  sides: readonly Side[],
  variants: readonly Variant[],
  table: RunTableRow,
  chosen: Pick<Settings, "rateUnit" | "timeUnit">,
): Figure {
  const all = sides.map(({ rows }) => series(rows));
  const hosts = all.map(hostOf);
  const ratios = all.some((side, at) =>
    [...side.values()].some((own) => !isHost(own) && pairsOf(own, hosts[at] ?? null, table.unit) !== null),
  );
  const shown = variants.filter((variant) => !ratios || !isHost(variant));
  const scale = scaleOf(
    table.unit,
    sides.flatMap(({ rows }) => rows.map(({ value }) => value)),
    chosen,
  );
  const points = sides.map((side, at) =>
    shown.flatMap((variant, y) => {
      const own = all[at]?.get(variantKey(variant));
      if (!own) return [];
      return [...own.blocks].flatMap(([block, value]) => {
        const base = hosts[at]?.blocks.get(block);
        const trial = side.rows.find((row) => row.block === block && variantKey(row) === variantKey(variant))?.trial_id;
        if (trial === undefined || (ratios && !base)) return [];
        return [
          {
            variant,
            y: y + offset(at, sides.length),
            block,
            x: ratios ? value / (base as number) : value / scale.factor,
            behind: side.behind(trial),
          },
        ];
      });
    }),
  );
  const medians = points.map((own) =>
    shown.flatMap((variant) => {
      const part = own.filter((point) => point.variant === variant);
      return part.length ? [{ x: median(part.map(({ x }) => x)), y: part[0]?.y ?? 0 }] : [];
    }),
  );
  const blocks = sides.map((_, at) => new Set(points[at]?.map(({ block }) => block)).size);
  const unit = ratios ? "ratio to the host" : scale.unit === "ratio" ? "share" : scale.unit || "count";
  return {
    title: `${clean(whatOf(table), 100)} of each run, ${unit}: blocks as dots (${blocks.join(", ")}) and their median`,
    data: sides.flatMap((side, at) => [
      {
        type: "scatter" as const,
        mode: "markers" as const,
        name: plain(side.name, 60),
        x: points[at]?.map(({ x }) => x) ?? [],
        y: points[at]?.map(({ y }) => y) ?? [],
        marker: { symbol: symbol(at), size: 7, color: colour(at), opacity: 0.8 },
        customdata: points[at]?.map(({ behind }) => behind) as never,
        text: points[at]?.map(({ variant, block }) => `${plain(variantWords(variant))}, block ${block}`) ?? [],
        hovertemplate: "%{text}: %{x:.4g}<extra></extra>",
      },
      {
        type: "scatter" as const,
        mode: "markers" as const,
        name: "median",
        showlegend: false,
        x: medians[at]?.map(({ x }) => x) ?? [],
        y: medians[at]?.map(({ y }) => y) ?? [],
        marker: { symbol: "line-ns-open" as const, size: 20, color: colour(at), line: { width: 3, color: colour(at) } },
        hovertemplate: "median: %{x:.4g}<extra></extra>",
      },
    ]),
    layout: {
      xaxis: {
        title: { text: ratios ? "overlay / host of the same block" : `${table.metric.replaceAll("_", " ")} (${unit})` },
        zeroline: false,
      },
      yaxis: axis(shown),
      shapes: ratios ? [line(1)] : [],
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      margin: { l: 10, r: 16, t: 30, b: 44 },
    },
    grid: {
      columns: [{ name: "run" }, { name: "overlay and mode" }, { name: "block" }, { name: "value", unit }],
      rows: points.flatMap((own, at) =>
        own.map(({ variant, block, x }) => [sides[at]?.name ?? "", variantWords(variant), block, x]),
      ),
      points: points.flatMap((own) => own.map(({ behind }) => behind)),
    },
    summary: sides.map(({ name }, at) => `${name}: ${blocks[at]} blocks`).join("; "),
  };
}

const axisOf = (ratios: boolean, others: number, unit: string): string => {
  const which = others > 1 ? ["each", "the first"] : ["second", "first"];
  return ratios ? which.join(" over ") : `${which.join(" less ")} (${unit})`;
};

/** How far each run lies from the first, with the interval of that. */
export function differences(
  first: string,
  against: readonly Against[],
  table: RunTableRow,
  chosen: Pick<Settings, "rateUnit" | "timeUnit">,
): Figure {
  const keys = [
    ...new Map(
      against.flatMap(({ changes }) => changes).map((change) => [variantKey(change), change as Variant]),
    ).values(),
  ];
  const ratios = against.some(({ changes }) => changes.some(({ kind }) => kind === "ratio"));
  const scale = scaleOf(
    table.unit,
    against.flatMap(({ changes }) =>
      changes.flatMap(({ estimate, interval }) => [estimate, interval?.low ?? null, interval?.high ?? null]),
    ),
    chosen,
  );
  const factor = ratios ? 1 : scale.factor;
  const margins = new Set(against.map(({ rules }) => rules.margin));
  const margin = margins.size === 1 && (ratios || table.unit === "ratio") ? ([...margins][0] as number) : null;
  const centre = ratios ? 1 : 0;
  const of = against.map(({ changes }, at) =>
    changes.flatMap((change) => {
      const y = keys.findIndex((key) => variantKey(key) === variantKey(change)) + offset(at, against.length);
      return change.estimate === null ? [] : [{ change, y, x: change.estimate / factor }];
    }),
  );
  const intervals = of.flat().filter(({ change }) => change.interval !== null).length;
  const blocks = blocksOfEach(of.flat().flatMap(({ change }) => [change.first.n, change.second.n]));
  const unit = ratios ? "ratio" : scale.unit === "ratio" ? "share" : scale.unit || "count";
  const what = ratios ? "over the first, of ratios to the host" : "less the first";
  return {
    title: `${clean(whatOf(table), 100)}: ${against.length === 1 ? "the second run" : "each run"} ${what} (${unit}${intervals ? ", with its interval" : ", no interval below six blocks in each"}); ${blocks}`,
    data: against.map(({ name, hindered }, at) => ({
      type: "scatter" as const,
      mode: "markers" as const,
      // The first run has the first colour in the plot of all.
      name: plain(`${name}${hindered ? ", not to be compared" : ""}`, 80),
      showlegend: true,
      x: of[at]?.map(({ x }) => x) ?? [],
      y: of[at]?.map(({ y }) => y) ?? [],
      marker: { symbol: hindered ? `${symbol(at + 1)}-open` : symbol(at + 1), size: 10, color: colour(at + 1) },
      error_x: {
        type: "data" as const,
        symmetric: false,
        array: of[at]?.map(({ change, x }) => (change.interval ? change.interval.high / factor - x : 0)) ?? [],
        arrayminus: of[at]?.map(({ change, x }) => (change.interval ? x - change.interval.low / factor : 0)) ?? [],
        thickness: 1.8,
        width: 5,
        color: colour(at + 1),
      },
      text:
        of[at]?.map(
          ({ change }) =>
            `${plain(variantWords(change))}: ${plain(changeWords(change, table, hindered))}<br>${change.first.n} and ${change.second.n} blocks`,
        ) ?? [],
      hovertemplate: "%{text}<br>%{x:.4g}<extra></extra>",
    })) as Figure["data"],
    layout: {
      xaxis: { title: { text: axisOf(ratios, against.length, unit) }, zeroline: false },
      yaxis: axis(keys),
      shapes: [
        ...(margin === null
          ? []
          : [
              {
                type: "rect" as const,
                x0: centre - margin,
                x1: centre + margin,
                y0: 0,
                y1: 1,
                yref: "paper" as const,
                line: { width: 0 },
                fillcolor: "rgba(128,128,128,0.22)",
                layer: "below" as const,
              },
            ]),
        line(centre),
      ],
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      margin: { l: 10, r: 16, t: 30, b: 44 },
    },
    grid: {
      columns: [
        ...["run", "against", "overlay and mode", "blocks", "blocks of the first"].map((name) => ({ name })),
        ...[`first`, "second", ratios ? "second over first" : "second less first", "low", "high"].map((name) => ({
          name,
          unit: ratios ? "ratio" : unit,
        })),
        ...["coverage", "verdict", "margin"].map((name) => ({ name })),
      ],
      rows: against.flatMap(({ name, changes, rules, hindered }) =>
        changes.map((change) => [
          ...[name, first, variantWords(change), change.second.n, change.first.n],
          ...[
            change.first.median,
            change.second.median,
            change.estimate,
            change.interval?.low ?? null,
            change.interval?.high ?? null,
          ].map((value) => (value === null ? null : value / factor)),
          ...[change.interval?.coverage ?? null, changeWords(change, table, hindered), rules.margin],
        ]),
      ),
    },
    summary: against
      .flatMap(({ name, changes, hindered }) =>
        changes.map((change) => `${name}, ${variantWords(change)}: ${changeWords(change, table, hindered)}`),
      )
      .join("; "),
  };
}
