/** One publication's figures of one metric: every printed repetition, as ratio to its own host where that means something. */
import type { PublicationFlawRow, PublicationValueRow } from "../../../contract/publications";
import type { Settings } from "../../../contract/settings";
import { COMPARED_UNITS } from "../../../contract/terms";
import { type Figure, plain } from "../../charts/figure";
import { AT_ONE } from "../../charts/reference";
import { clean } from "../../lib/text";
import { scaleOf } from "../../lib/units";

/** One overlay (or the host) in one test: cloud, instance, tool and parameters. */
export interface PublishedLine {
  rows: PublicationValueRow[];
  /** Mean of the host's figures in the same test; null where none was printed. */
  host: number | null;
  isHost: boolean;
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const test = (row: PublicationValueRow): string =>
  JSON.stringify([row.publication, row.cloud, row.instance, row.tool, row.protocol, row.metric, row.parameters]);
const isHost = ({ overlay, mode }: PublicationValueRow): boolean => overlay === "host" && mode === null;

/** rows: of one publication, in the file's order. What clouds document is no measurement. */
export function linesOf(rows: readonly PublicationValueRow[]): PublishedLine[] {
  const measured = rows.filter(({ statistic, tool }) => statistic !== "documented" && tool !== null);
  const lines = new Map<string, PublicationValueRow[]>();
  for (const row of measured) {
    const key = JSON.stringify([test(row), row.overlay, row.mode, row.overlay_version, row.overlay_mtu_bytes]);
    lines.set(key, [...(lines.get(key) ?? []), row]);
  }
  return [...lines.values()].map((own) => {
    const first = own[0] as PublicationValueRow;
    const host = measured.filter((row) => isHost(row) && test(row) === test(first)).map(({ value }) => value);
    return { rows: own, host: host.length ? mean(host) : null, isHost: isHost(first) };
  });
}

/** Mean of a line's figures over its host's; null where that means nothing. */
export const ratioOf = ({ rows, host }: PublishedLine): number | null =>
  host && COMPARED_UNITS.includes(rows[0]?.unit ?? "") ? mean(rows.map(({ value }) => value)) / host : null;

export const tierName = ({ cloud, instance }: Pick<PublicationFlawRow, "cloud" | "instance">): string =>
  [cloud, instance].filter(Boolean).join(" ");

export const variantName = (row: PublicationValueRow): string =>
  [row.overlay, row.mode, row.overlay_mtu_bytes === null ? null : `MTU ${row.overlay_mtu_bytes}`]
    .filter(Boolean)
    .join(" ");

/** Which flaws concern any of the rows: what a flaw leaves open means all; the host's rows are each pair's other half. */
export const flawsOf = (
  flaws: readonly PublicationFlawRow[],
  rows: readonly PublicationValueRow[],
): PublicationFlawRow[] =>
  flaws.filter((flaw) =>
    rows.some(
      (row) =>
        flaw.publication === row.publication &&
        (["cloud", "instance", "protocol", "metric"] as const).every(
          (name) => flaw[name] === null || flaw[name] === row[name],
        ) &&
        (isHost(row) ||
          (["overlay", "mode"] as const).every((name) => flaw[name] === null || flaw[name] === row[name])),
    ),
  );

/** mean_of_3 is `a mean of 3`. */
const words = (statistic: string): string => `a ${statistic.replaceAll("_", " ")}`;

const about = (metric: string, protocol: string | null): string =>
  [protocol?.toUpperCase(), metric.replaceAll("_", " ")].filter(Boolean).join(" ");

/** lines: of one publication, metric and protocol. */
export function publication(lines: readonly PublishedLine[], chosen: Pick<Settings, "rateUnit" | "timeUnit">): Figure {
  const first = lines[0]?.rows[0];
  if (!first) throw new RangeError("a plot of nothing");
  // All as ratios or none: the two share no axis.
  const ratios = lines.every((line) => ratioOf(line) !== null);
  const scale = scaleOf(
    first.unit,
    lines.flatMap(({ rows }) => rows.map(({ value }) => value)),
    chosen,
  );
  const drawn = (line: PublishedLine, value: number): number =>
    ratios ? value / (line.host ?? 1) : value / scale.factor;
  const at = lines.map((_, index) => index);
  const single = lines.flatMap((line, index) => line.rows.map((row) => ({ line, row, index })));
  const several = lines.filter(({ rows }) => rows.length > 1);
  const repeated = single.filter(({ row }) => row.statistic === "single").length;
  const unit = ratios
    ? "ratio to its own host"
    : scale.unit && scale.unit !== "ratio"
      ? scale.unit
      : first.unit === "1"
        ? "count"
        : "share";
  const trace = (name: string, part: typeof single, symbol: string, color: string) => ({
    type: "scatter" as const,
    mode: "markers" as const,
    name,
    x: part.map(({ line, row }) => drawn(line, row.value)),
    y: part.map(({ index }) => index),
    marker: { symbol, size: 9, color, opacity: 0.85 },
    cliponaxis: false,
    text: part.map(
      ({ row }) =>
        `${plain(tierName(row))}, ${plain(variantName(row))}: ${row.value / scale.factor} ${scale.unit}${row.repetition === null ? "" : `, repetition ${row.repetition}`}${row.note ? `<br>${plain(row.note, 120)}` : ""}`,
    ),
    hovertemplate: "%{text}<extra></extra>",
  });
  const overlays = single.filter(({ line }) => !line.isHost);
  const hosts = single.filter(({ line }) => line.isHost);
  return {
    title: `${clean(first.publication)}: ${about(first.metric, first.protocol)}, ${unit} (${repeated === single.length ? `${single.length} single runs` : repeated ? `${single.length} figures, ${repeated} of them single runs` : `${single.length} figures, each ${clean(words(first.statistic))}`})`,
    data: [
      ...(overlays.length ? [trace("overlay, as printed", overlays, "circle", "#0072b2")] : []),
      ...(hosts.length ? [trace("host, as printed", hosts, "square", "#e69f00")] : []),
      ...(several.length
        ? [
            {
              type: "scatter" as const,
              mode: "markers" as const,
              name: "mean",
              x: several.map((line) => drawn(line, mean(line.rows.map(({ value }) => value)))),
              y: several.map((line) => lines.indexOf(line)),
              marker: {
                symbol: "line-ns-open" as const,
                size: 22,
                color: "#d55e00",
                line: { width: 2, color: "#d55e00" },
              },
              hovertemplate: "mean: %{x:.4g}<extra></extra>",
            },
          ]
        : []),
    ],
    layout: {
      xaxis: {
        title: {
          text: ratios
            ? "figure / mean of the host's in the same test"
            : `${first.metric.replaceAll("_", " ")} (${unit})`,
        },
        rangemode: "tozero",
        zeroline: false,
      },
      yaxis: {
        tickvals: at,
        ticktext: lines.map(({ rows }) =>
          plain(
            [tierName(rows[0] as PublicationValueRow), variantName(rows[0] as PublicationValueRow)]
              .filter(Boolean)
              .join(", "),
            56,
          ),
        ),
        range: [lines.length - 0.4, -0.6],
        zeroline: false,
      },
      shapes: ratios ? [AT_ONE] : [],
      legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
      margin: { l: 10, r: 16, t: 30, b: 44 },
    },
    grid: {
      columns: [
        "publication",
        "cloud",
        "instance",
        "overlay",
        "mode",
        "version",
        "MTU",
        "tool",
        "protocol",
        "metric",
        "statistic",
        "repetition",
        "value",
        "unit",
        "ratio to the host's mean",
        "parameters",
        "note",
      ].map((name) => ({ name })),
      rows: single.map(({ line, row }) => [
        ...[
          row.publication,
          row.cloud,
          row.instance,
          row.overlay,
          row.mode,
          row.overlay_version,
          row.overlay_mtu_bytes,
          row.tool,
          row.protocol,
        ],
        ...[
          row.metric,
          row.statistic,
          row.repetition,
          row.value,
          row.unit,
          ratioOf(line) === null ? null : row.value / (line.host ?? 1),
          row.parameters,
          row.note,
        ],
      ]),
    },
    summary: `${lines.length} rows, ${single.length} figures`,
  };
}
