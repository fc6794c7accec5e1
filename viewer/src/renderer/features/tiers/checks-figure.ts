/** What a tier declares against what its nodes measured: a ratio for each check, on the band that the check allows. */
import type { TierCheckRow } from "../../../contract/tiers";
import { type Figure, plain } from "../../charts/figure";
import { AT_ONE } from "../../charts/reference";
import { clean } from "../../lib/text";

const VERDICTS = [
  { verdict: "pass", words: "passed", symbol: "circle", colour: "#0072b2" },
  { verdict: "fail", words: "failed", symbol: "x", colour: "#d55e00" },
  { verdict: "not-applicable", words: "not applicable here", symbol: "diamond-open", colour: "#888888" },
] as const;

/** A tolerance of zero makes what is declared a bound: no more than that. */
export const isBound = ({ tolerance }: Pick<TierCheckRow, "tolerance">): boolean => tolerance === 0;

export const verdictWords = (verdict: string): string =>
  VERDICTS.find((each) => each.verdict === verdict)?.words ?? clean(verdict);

/** null where one of the two is missing, or nothing is what is declared. */
export const measuredOverDeclared = ({
  expected,
  measured,
}: Pick<TierCheckRow, "expected" | "measured">): number | null =>
  expected === null || measured === null || expected === 0 ? null : measured / expected;

const pair = ({ client_node, server_node }: TierCheckRow): string =>
  client_node === server_node ? client_node : `${client_node} to ${server_node}`;

const digits = (value: number): number => Number(value.toPrecision(4));

/** several: whether a profile has checks of more than one run, so that the run has to be told. */
export function tierChecks(rows: readonly TierCheckRow[], several: boolean): Figure {
  const group = (row: TierCheckRow): string =>
    plain(several ? `${row.profile} ${row.created_at.slice(0, 16).replace("T", " ")}` : row.profile, 44);
  const groups = [...new Set(rows.map(group))];
  // Checks of a kind stand together.
  const kinds = [...new Set(rows.map((row) => row.name))];
  const ordered = kinds.flatMap((kind) => rows.filter((row) => row.name === kind));
  const drawn = groups.flatMap((name) =>
    ordered.flatMap((row) => {
      const ratio = group(row) === name ? measuredOverDeclared(row) : null;
      return ratio === null ? [] : [{ row, ratio, group: name, label: plain(`${row.name}, ${pair(row)}`, 60) }];
    }),
  );
  const lines = new Set(drawn.map((one) => JSON.stringify([one.group, one.label]))).size;
  const y = (of: typeof drawn): string[][] => [of.map((one) => one.group), of.map((one) => one.label)];
  // All rows, so that lines keep the order of the checks; without a tolerance the band has no width.
  const band = drawn;
  const declared = (row: TierCheckRow): number => Math.abs(row.expected ?? 1);
  const most = Math.max(
    1.1,
    ...drawn.map(({ row, ratio }) => Math.max(ratio, (row.high ?? 0) / declared(row))),
    ...band.map(({ row }) => 1 + (row.tolerance ?? 0) / declared(row)),
  );
  return {
    title: `Measured over declared, by profile: ${drawn.length} ${drawn.length === 1 ? "check" : "checks"}, each once (ratio)`,
    data: [
      {
        type: "scatter",
        mode: "markers",
        name: "allowed",
        showlegend: false,
        x: band.map(() => 1),
        y: y(band) as never,
        marker: { size: 1, color: "rgba(128,128,128,0.5)" },
        error_x: {
          type: "data",
          symmetric: false,
          array: band.map(({ row }) => (isBound(row) ? 0 : (row.tolerance ?? 0) / declared(row))),
          arrayminus: band.map(({ row }) => (isBound(row) ? 1 : (row.tolerance ?? 0) / declared(row))),
          thickness: 11,
          width: 0,
          color: "rgba(128,128,128,0.36)",
        },
        hoverinfo: "skip",
      },
      ...VERDICTS.flatMap(({ verdict, words, symbol, colour }) => {
        const own = drawn.filter(({ row }) => row.verdict === verdict);
        if (own.length === 0) return [];
        return [
          {
            type: "scatter" as const,
            mode: "markers" as const,
            cliponaxis: false,
            name: `${words} (${own.length})`,
            x: own.map(({ ratio }) => ratio),
            y: y(own) as never,
            marker: { symbol, size: 9, color: colour, line: { width: symbol.endsWith("open") ? 2 : 0, color: colour } },
            error_x: {
              type: "data" as const,
              symmetric: false,
              array: own.map(({ row, ratio }) =>
                row.high === null ? 0 : Math.max(0, row.high / declared(row) - ratio),
              ),
              arrayminus: own.map(({ row, ratio }) =>
                row.low === null ? 0 : Math.max(0, ratio - row.low / declared(row)),
              ),
              thickness: 1.5,
              width: 3,
              color: colour,
            },
            customdata: own.map(({ row }) => row.run_id),
            text: own.map(
              ({ row, ratio }) =>
                `${plain(row.name)}, ${plain(pair(row))}: ${digits(ratio)} of what is declared, ${words}${row.reason ? `<br>${plain(row.reason, 120)}` : ""}`,
            ),
            hovertemplate: "%{text}<extra></extra>",
          },
        ];
      }),
    ],
    layout: {
      xaxis: { side: "top", title: { text: "measured / declared" }, range: [0, most * 1.05], zeroline: false },
      yaxis: {
        type: "multicategory",
        range: [lines - 0.5, -0.5],
        showgrid: false,
        dividercolor: "rgba(128,128,128,0.5)",
        tickfont: { size: 12 },
      } as never,
      shapes: [AT_ONE],
      legend: { orientation: "h", yref: "container", y: 1, yanchor: "top", x: 0 } as never,
      margin: { l: 10, r: 16, t: 76, b: 16 },
    },
    grid: {
      columns: [
        "profile",
        "run",
        "check",
        "from",
        "to",
        "declared",
        "tolerance",
        "measured",
        "low",
        "high",
        "unit",
        "measured / declared",
        "verdict",
        "reason",
      ].map((name) => ({ name })),
      rows: rows.map((row) => [
        ...[row.profile, row.run_id, row.name, row.client_node, row.server_node, row.expected],
        row.tolerance === null ? null : isBound(row) ? "at most" : row.tolerance,
        ...[
          row.measured,
          row.low,
          row.high,
          row.unit,
          measuredOverDeclared(row),
          verdictWords(row.verdict),
          row.reason,
        ],
      ]),
      points: rows.map((row) => row.run_id),
    },
    summary: VERDICTS.map(
      ({ verdict, words }) => `${rows.filter((row) => row.verdict === verdict).length} ${words}`,
    ).join(", "),
  };
}
