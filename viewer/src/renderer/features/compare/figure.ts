/** Overlays × modes of one table: a strip each, with every repetition, median, interval, theory and what was published. */

import type { ComparisonRow } from "../../../contract/compare";
import { type Figure, plain } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { blockSpan } from "../../lib/counts";
import { type PublishedRatio, publishedOf } from "../../lib/published";
import { variantNames } from "../../lib/runs";
import { clean, metricWords } from "../../lib/text";
import { number, ratio, type Scale, scaleOf, withUnit } from "../../lib/units";
import { isLog } from "./axis-choice";
import type { CompareInput } from "./input";
import { publishedWords } from "./published";
import { type Dot, isHost, ratioDots, trialDots, variantKey } from "./ratios";
import { compareGrid } from "./table";
import { LOOK, marks, segments, type Trace } from "./traces";
import { missing, ratioWords, verdict } from "./words";

/** One variant, in base units or as ratio. */
interface Strip {
  row: ComparisonRow;
  name: string;
  dots: Dot[];
  median: number | null;
  /** coverage: null where it is but the range of the blocks. */
  bar: { low: number; high: number; coverage: number | null } | null;
  theory: number | null;
  published: { value: number; one: PublishedRatio }[];
}

const MANY = 12;

function stripOf(row: ComparisonRow, name: string, dots: Dot[], asRatio: boolean, host: number | null): Strip {
  const published = publishedOf(row.published);
  const range = (low: number | null, high: number | null, coverage: number | null): Strip["bar"] =>
    low === null || high === null ? null : { low, high, coverage };
  const common = { row, name: plain(name), dots };
  if (!asRatio)
    return {
      ...common,
      median: row.median,
      bar: row.blocks > 1 ? range(row.low, row.high, null) : null,
      theory: row.theory === null || host === null || isHost(row) ? null : row.theory * host,
      published: published.flatMap((one) => one.overlay_values.map((value) => ({ value, one }))),
    };
  return {
    ...common,
    median: row.ratio,
    bar:
      isHost(row) || row.ratio_blocks < 2
        ? null
        : (range(row.interval_low, row.interval_high, row.coverage) ?? range(row.ratio_low, row.ratio_high, null)),
    theory: isHost(row) ? null : row.theory,
    published: published.flatMap((one) => (one.ratio === null ? [] : [{ value: one.ratio, one }])),
  };
}

const valuesOf = ({ dots, median, bar, theory, published }: Strip): number[] =>
  [
    ...dots.map(({ value }) => value),
    median,
    bar?.low ?? null,
    bar?.high ?? null,
    theory,
    ...published.map(({ value }) => value),
  ].filter((value): value is number => value !== null);

/** A value as the hover says it. */
type Say = (value: number) => string;

function traces(strips: Strip[], scale: Scale, say: Say, asRatio: boolean, height: number): Trace[] {
  const blocks = [...new Set(strips.flatMap(({ dots }) => dots.map(({ block }) => block)))].sort((a, b) => a - b);
  // The first block at the top of a strip, the last at its bottom: a drift shows as a slope.
  const down = new Map(blocks.map((block, at) => [block, ((at + 0.5) / blocks.length - 0.5) * 0.66]));
  const bars = (claimed: boolean) =>
    strips.flatMap(({ name, bar }, y) =>
      bar && (bar.coverage !== null) === claimed
        ? [
            {
              from: bar.low / scale.factor,
              to: bar.high / scale.factor,
              y,
              text: claimed
                ? `${name}: the median lies between ${say(bar.low)} and ${say(bar.high)}<br>(an interval of ${number((bar.coverage as number) * 100)} % coverage)`
                : `${name}: blocks range from ${say(bar.low)} to ${say(bar.high)}<br>(smallest and largest; nothing is claimed)`,
            },
          ]
        : [],
    );
  const point = (value: number, y: number, text: string, trial: number | null = null) => ({
    x: value / scale.factor,
    y,
    text,
    trial,
  });
  const published = (comparable: boolean) =>
    strips.flatMap(({ name, published: all }, y) =>
      all
        .filter(({ one }) => one.comparable === comparable)
        .map(({ value, one }, at) =>
          point(
            value,
            y + 0.2 + 0.08 * (at % 3),
            [
              `${name}, published`,
              ...publishedWords(one).map((line) => plain(line, 140)),
              ...(asRatio ? [] : [say(value)]),
            ].join("<br>"),
          ),
        ),
    );
  return [
    segments("interval of the median", LOOK.interval, bars(true)),
    segments("smallest to largest block (no claim)", LOOK.range, bars(false)),
    marks(
      asRatio ? "a block, over the host's" : "a trial",
      LOOK.dot,
      strips.flatMap(({ name, dots }, y) =>
        dots.map((dot) =>
          point(
            dot.value,
            y + (down.get(dot.block) ?? 0),
            `${name}, block ${dot.block}: ${say(dot.value)}${dot.of > 1 ? ` (median of ${dot.of} repetitions)` : ""}<br>click: the trial behind it`,
            dot.trial,
          ),
        ),
      ),
    ),
    marks(
      "median",
      { ...LOOK.median, size: Math.round(height * 0.72) },
      strips.flatMap(({ name, median, row }, y) =>
        median === null || row.blocks < 2 ? [] : [point(median, y, `${name}: median ${say(median)}`)],
      ),
    ),
    marks(
      asRatio ? "header theory" : "header theory × the host's median",
      LOOK.theory,
      strips.flatMap(({ name, theory }, y) =>
        theory === null
          ? []
          : [point(theory, y - 0.28, `${name}: ${say(theory)} if encapsulation cost nothing but its bytes`)],
      ),
    ),
    marks("published", LOOK.published, published(true)),
    marks("published, at another MTU", LOOK.publishedElse, published(false)),
  ].filter((trace) => trace.x.length > 0);
}

/** px of the axis that stands above many strips too. */
const ABOVE = 20;
/** An axis is only drawn where a trace is on it. */
const AXIS_ABOVE = {
  type: "scatter",
  x: [null],
  y: [null],
  xaxis: "x2",
  hoverinfo: "skip",
  showlegend: false,
} as Trace;

/** Where nothing is but zero: Plotly would show as much below it. Its dots are whole. */
const FROM_ZERO = [-0.02, 1];

export function compareFigure(input: CompareInput): Figure {
  const { table, rows, asRatio, units } = input;
  const dots = asRatio ? ratioDots(input.dots) : trialDots(input.dots);
  const host = rows.find(isHost)?.median ?? null;
  const names = variantNames(rows, 34);
  const strips = rows.map((row, at) => stripOf(row, names[at] ?? "", dots.get(variantKey(row)) ?? [], asRatio, host));
  const values = strips.flatMap(valuesOf);
  const scale = asRatio ? scaleOf("ratio", [], units) : scaleOf(table.unit, values, units);
  const say: Say = (value) => (asRatio ? `${ratio(value)} of the host` : withUnit(value, scale));
  const log = isLog(input.axis, values);
  const tall = strips.length > MANY;
  const height = tall ? 34 : 52;
  const drawn = traces(strips, scale, say, asRatio, height);
  const words = strips.map((strip) => besides(strip, asRatio, scale));
  const zeros = log ? strips.flatMap((strip) => strip.dots).filter(({ value }) => value <= 0).length : 0;
  const positive = values.filter((value) => value > 0).map((value) => value / scale.factor);
  const unit = asRatio ? "ratio to the host" : scale.unit;
  const what = plain(metricWords(table.metric));
  const others = rows.filter((row) => !isHost(row));
  const counts = asRatio && others.length ? others.map((row) => row.ratio_blocks) : rows.map((row) => row.blocks);
  const drawnBlocks = counts.filter((count) => count > 0);
  const trials = rows.some((row) => (dots.get(variantKey(row)) ?? []).length > row.blocks)
    ? `, ${input.dots.length} trials`
    : "";
  const place = table.place === null ? "" : ` (${clean(table.place)})`;
  const provisional = rows.some((row) => row.provisional) ? "; provisional: the run has not ended" : "";
  const ticks = log
    ? logAxis(positive)
    : {
        type: "linear" as const,
        ...(values.length && values.every((value) => value === 0) ? { range: FROM_ZERO } : {}),
      };
  return {
    title: `${clean(table.benchmark)}${place}: ${what}${unit ? `, ${unit}` : ""}; ${clean(input.tier)}, ${blockSpan(drawnBlocks)}${trials}${provisional}`,
    data: tall ? [...drawn, AXIS_ABOVE] : drawn,
    layout: {
      height: strips.length * height + (tall ? 150 : 130),
      margin: {
        t: tall ? 46 + ABOVE : 46,
        r: 16 + Math.min(330, 7 * Math.max(0, ...words.flat().map((line) => line.length))),
        b: 60,
        l: 60,
      },
      xaxis: {
        ...ticks,
        title: {
          text: `${what}${asRatio ? " (ratio to the host of the same block)" : unit ? ` (${unit})` : ""}; ${table.better} is better${log ? "; logarithmic" : ""}${zeros ? `; ${zeros} of zero not drawn` : ""}`,
          standoff: 8,
          font: { size: 13 },
        },
        zeroline: false,
      },
      // One looks at the first strips without seeing the bottom.
      ...(tall
        ? { xaxis2: { ...ticks, overlaying: "x", matches: "x", side: "top", showgrid: false, zeroline: false } }
        : {}),
      yaxis: {
        range: [strips.length - 0.4, -0.6],
        tickmode: "array",
        tickvals: strips.map((_, y) => y),
        ticktext: strips.map(({ name }) => name),
        showgrid: false,
        zeroline: false,
        fixedrange: true,
      },
      shapes: [
        ...strips.slice(1).map((_, y) => ({
          type: "line" as const,
          xref: "paper" as const,
          x0: 0,
          x1: 1,
          y0: y + 0.5,
          y1: y + 0.5,
          line: { color: "#88888855", width: 1 },
        })),
        ...(asRatio
          ? [
              {
                type: "line" as const,
                yref: "paper" as const,
                x0: 1,
                x1: 1,
                y0: 0,
                y1: 1,
                line: { color: "#888888", width: 1.5, dash: "dash" as const },
              },
            ]
          : []),
      ],
      annotations: words.map((lines, y) => ({
        xref: "paper" as const,
        x: 1,
        xanchor: "left" as const,
        xshift: 10,
        y,
        yanchor: "middle" as const,
        text: lines.filter(Boolean).join("<br>"),
        showarrow: false,
        align: "left" as const,
        font: { size: 12 },
      })),
      showlegend: true,
      legend: { orientation: "h", x: 0, y: tall ? 1 + ABOVE / (strips.length * height) : 1, yanchor: "bottom" },
      hovermode: "closest",
    },
    ...compareGrid(input, dots, scale),
    summary: strips.map(({ name }, at) => `${name}: ${(words[at] ?? []).join(", ")}`).join("; "),
  };
}

/** The verdict and what it rests on; below it what is missing. */
function besides({ row }: Strip, asRatio: boolean, scale: Scale): string[] {
  const median = row.median === null ? "no value" : `median ${withUnit(row.median, scale)}`;
  const ratioSays = row.ratio === null || row.ratio_same_step ? [] : [ratioWords(row)];
  const first = isHost(row)
    ? [asRatio && row.median !== null ? "what the others are divided by" : median]
    : asRatio
      ? [verdict(row), ...ratioSays]
      : [...(row.ratio === null ? [] : [verdict(row)]), median];
  return [first.join(" · "), missing(row)].filter(Boolean).map((line) => plain(line, 70));
}
