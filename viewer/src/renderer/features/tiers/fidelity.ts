/** Published against measured: the ratio to the host as printed, as the lab has it, and as headers alone would make it. */
import type { TierPublishedRow } from "../../../contract/tiers";
import { type Figure, plain } from "../../charts/figure";
import { logAxis } from "../../charts/log-axis";
import { AT_ONE } from "../../charts/reference";
import { blocksOfEach } from "../../lib/counts";
import type { PublishedRatio } from "../../lib/published";

/** One published pair beside the run that counts for it. */
export interface FidelityLine {
  row: TierPublishedRow;
  pair: PublishedRatio;
}

/**
 * For each pair, on each accelerator and machine, the run that counts: one with the overlay's MTU as printed before
 * another, one with an interval before one without, then the newest. Rows come newest first.
 */
export function linesOf(rows: readonly TierPublishedRow[], of: (json: string) => PublishedRatio[]): FidelityLine[] {
  const best = new Map<string, FidelityLine & { rank: number }>();
  for (const row of rows) {
    if (row.ratio === null) continue;
    for (const pair of of(row.published)) {
      if (!pair.comparable) continue;
      const key = JSON.stringify([
        row.profile,
        row.accelerator,
        row.machine,
        row.provider,
        row.overlay,
        row.mode,
        row.metric,
        row.place,
        pair.publication,
        pair.source,
      ]);
      const rank = (pair.as_printed ? 2 : 0) + (row.interval_low === null ? 0 : 1);
      const known = best.get(key);
      if (!known || rank > known.rank) best.set(key, { row, pair, rank });
    }
  }
  return [...best.values()]
    .map(({ row, pair }) => ({ row, pair }))
    .sort((a, b) => a.row.profile.localeCompare(b.row.profile, "en", { numeric: true }));
}

/** In words, never more than the run may claim. */
export const fidelityWords = ({ row, pair }: FidelityLine): string =>
  row.provisional ? "no verdict before the run ends" : (pair.verdict ?? "not judged");

export const lineName = ({ row, pair }: FidelityLine): string =>
  [row.profile, row.overlay, row.mode, pair.overlay_mtu === null ? null : `MTU ${pair.overlay_mtu}`, row.place]
    .filter(Boolean)
    .join(" ");

const spread = (value: number, low: number | null, high: number | null): [number, number] =>
  low === null || high === null ? [0, 0] : [Math.max(0, high - value), Math.max(0, value - low)];

/** lines: of one metric, on one accelerator and machine. */
export function fidelity(lines: readonly FidelityLine[], metric: string): Figure {
  const names = lines.map((line, at) => ({ key: String(at), text: plain(lineName(line), 56) }));
  const at = lines.map((_, index) => index);
  const blocks = blocksOfEach(lines.map(({ row }) => row.ratio_blocks));
  const values = lines.flatMap(({ row, pair }) => [
    ...[row.ratio, row.interval_low, row.interval_high, row.theory],
    ...[pair.ratio, pair.low, pair.high],
  ]);
  const published = lines.map(({ pair }) => spread(pair.ratio, pair.low, pair.high));
  const lab = lines.map(({ row }) => spread(row.ratio ?? 0, row.interval_low, row.interval_high));
  const theory = at.filter((index) => typeof lines[index]?.row.theory === "number");
  const bars = (of: [number, number][], color: string) =>
    ({
      type: "data",
      symmetric: false,
      array: of.map(([up]) => up),
      arrayminus: of.map(([, down]) => down),
      thickness: 1.6,
      width: 4,
      color,
    }) as const;
  return {
    title: `Published and measured ${metric.replaceAll("_", " ")}, ratio to the host (lab: median of ${blocks}, with its interval)`,
    data: [
      {
        type: "scatter",
        mode: "markers",
        name: "published",
        x: lines.map(({ pair }) => pair.ratio),
        y: at.map((index) => index - 0.16),
        marker: { symbol: "square", size: 9, color: "#e69f00" },
        error_x: bars(published, "#e69f00"),
        text: lines.map(
          ({ pair }) =>
            `${plain(pair.publication)}: ${plain(pair.source, 110)}<br>${digits(pair.ratio)}${range(pair.low, pair.high)}`,
        ),
        hovertemplate: "%{text}<extra></extra>",
      },
      {
        type: "scatter",
        mode: "markers",
        name: "lab",
        x: lines.map(({ row }) => row.ratio),
        y: at.map((index) => index + 0.16),
        marker: { symbol: "circle", size: 9, color: "#0072b2" },
        error_x: bars(lab, "#0072b2"),
        customdata: lines.map(({ row }) => row.run_id),
        text: lines.map(
          (line) =>
            `lab, ${line.row.ratio_blocks} blocks: ${digits(line.row.ratio ?? 0)}${range(line.row.interval_low, line.row.interval_high)}<br>${plain(fidelityWords(line))}${line.pair.reason ? `: ${plain(line.pair.reason, 120)}` : ""}`,
        ),
        hovertemplate: "%{text}<extra></extra>",
      },
      ...(theory.length
        ? [
            {
              type: "scatter" as const,
              mode: "markers" as const,
              name: "if only headers cost",
              x: theory.map((index) => lines[index]?.row.theory ?? null),
              y: theory,
              marker: {
                symbol: "line-ns-open" as const,
                size: 20,
                line: { width: 2, color: "#009e73" },
                color: "#009e73",
              },
              hovertemplate: "headers alone: %{x:.3f}<extra></extra>",
            },
          ]
        : []),
    ],
    layout: {
      xaxis: { title: { text: "overlay / host (logarithmic)" }, ...logAxis([1, ...values]) },
      yaxis: {
        tickvals: at,
        ticktext: names.map(({ text }) => text),
        range: [lines.length - 0.4, -0.6],
        showgrid: false,
        zeroline: false,
      },
      shapes: [AT_ONE],
      annotations: lines.map((line, index) => ({
        x: 1.01,
        xref: "paper",
        xanchor: "left",
        y: index,
        yref: "y",
        text: plain(fidelityWords(line), 34),
        showarrow: false,
        font: { size: 12 },
      })),
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      margin: { l: 10, r: 190, t: 30, b: 44 },
    },
    grid: {
      columns: [
        "tier",
        "overlay",
        "mode",
        "publication",
        "as printed for",
        "published",
        "low",
        "high",
        "lab",
        "low",
        "high",
        "blocks",
        "headers alone",
        "accelerator",
        "verdict",
        "reason",
        "run",
      ].map((name, column) => ([5, 6, 7, 8, 9, 10, 12].includes(column) ? { name, unit: "ratio" } : { name })),
      rows: lines.map((line) => [
        ...[line.row.profile, line.row.overlay, line.row.mode, line.pair.publication, line.pair.source],
        ...[
          line.pair.ratio,
          line.pair.low,
          line.pair.high,
          line.row.ratio,
          line.row.interval_low,
          line.row.interval_high,
        ],
        ...[
          line.row.ratio_blocks,
          line.row.theory,
          line.row.accelerator,
          fidelityWords(line),
          line.pair.reason,
          line.row.run_id,
        ],
      ]),
      points: lines.map(({ row }) => row.run_id),
    },
    summary: lines.map((line) => `${lineName(line)}: ${fidelityWords(line)}`).join("; "),
  };
}

const digits = (value: number): string => value.toPrecision(3);
const range = (low: number | null, high: number | null): string =>
  low === null || high === null ? "" : ` (${digits(low)} to ${digits(high)})`;
