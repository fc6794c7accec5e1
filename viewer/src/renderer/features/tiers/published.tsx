/** What was published for a tier beside what the lab measured on it, with the verdict of bench:fidelity. */
import { useMemo } from "preact/hooks";
import type { TierPublishedRow } from "../../../contract/tiers";
import { publishedOf } from "../../lib/published";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { ratio, time } from "../../lib/units";
import { useQuery } from "../../state/query";
import { chooseRun, filterOf, keepFilter, show } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choice, distinct, still } from "../../ui/choice";
import { TableScroll } from "../../ui/copied";
import { Text } from "../../ui/text";
import { type FidelityLine, fidelity, fidelityWords, linesOf } from "./fidelity";
import { nodesOf } from "./newest";

const OTHERWISE = { metric: null as string | null, place: null as string | null, benchmark: null as string | null };
const choose = (part: Partial<typeof OTHERWISE>): void =>
  keepFilter("fidelity", { ...filterOf("fidelity", OTHERWISE), ...part });

const placeOf = ({ row }: FidelityLine): string => nodesOf(row);

export function PublishedPart() {
  return (
    <Rows
      asked={useQuery("tier_published", {})}
      empty="No run of this file measured, on a tier that something was published for, an overlay that it was published of. ./task bench:fidelity measures them."
    >
      {(rows) => <Published rows={rows} />}
    </Rows>
  );
}

function Published({ rows }: { rows: TierPublishedRow[] }) {
  const key = rows.map(({ run_id, provisional, ratio_blocks }) => `${run_id} ${provisional} ${ratio_blocks}`).join();
  const lines = useMemo(() => linesOf(rows, publishedOf), [key]);
  const kept = filterOf("fidelity", OTHERWISE);
  const places = distinct(lines, placeOf);
  const place = still(kept.place, places) ?? (lines[0] ? placeOf(lines[0]) : null);
  const metrics = distinct(lines, ({ row }) => row.metric);
  const metric = still(kept.metric, metrics) ?? (metrics.includes("goodput") ? "goodput" : (metrics[0] ?? null));
  const shown = lines.filter((line) => placeOf(line) === place && line.row.metric === metric);
  const figure = useMemo(() => fidelity(shown, metric ?? ""), [key, place, metric]);
  if (!lines.length)
    return (
      <p class="empty">
        What was published was measured at another MTU of the overlay, so that the two cannot be held together.
      </p>
    );
  return (
    <>
      <div class="filters">
        <Choice label="Nodes" value={place} options={places} onChoose={(value) => choose({ place: value })} />
        <Choice
          label="Metric"
          value={metric}
          options={metrics.map((value) => ({ value, text: value.replaceAll("_", " ") }))}
          onChoose={(value) => choose({ metric: value })}
        />
        {places.length === 1 && place ? <span class="quiet">{clean(place, 160)}</span> : null}
      </div>
      <Chart
        figure={figure}
        height={Math.max(240, 110 + shown.length * 40)}
        behind="Compare"
        onPoint={(run) => {
          chooseRun(String(run));
          show("compare");
        }}
      />
      <TableScroll label="Published against measured">
        <table class="wide dense">
          <thead>
            <tr>
              {[
                "Tier",
                "Overlay",
                "Published",
                "Lab",
                "Blocks",
                "Headers alone",
                "Verdict",
                "Why",
                "What is wrong with the publication",
              ].map((word) => (
                <th scope="col" class={CLASSES[word] ?? ""} title={TIPS[word]}>
                  {word}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((line) => (
              <Line line={line} />
            ))}
          </tbody>
        </table>
      </TableScroll>
    </>
  );
}

const CLASSES: Record<string, string> = {
  Overlay: "which",
  Published: "number",
  Lab: "number",
  Blocks: "number",
  "Headers alone": "number",
  Why: "why",
  "What is wrong with the publication": "why",
};

const TIPS: Record<string, string> = {
  Published:
    "Ratio to its own host. Its interval is from repetitions where they were printed, else from rounding and the tool's step alone.",
  Lab: "Median over blocks of overlay over host of the same block, and the interval that holds it; none below six blocks.",
  "Headers alone": "What the ratio would be if encapsulation cost nothing but its bytes.",
};

function Line({ line }: { line: FidelityLine }) {
  const { row, pair } = line;
  return (
    <tr>
      <td>
        <Text value={row.profile} most={40} />
        <small class="below">run of {time(row.created_at)}</small>
      </td>
      <td>
        {clean(variantWords(row))}
        <small class="below">
          {clean(pair.publication)}: {clean(pair.source, 160)}
        </small>
      </td>
      <td class="number nowrap">
        {ratio(pair.ratio)}
        <Between low={pair.low} high={pair.high} />
      </td>
      <td class="number nowrap">
        {ratio(row.ratio)}
        <Between low={row.interval_low} high={row.interval_high} />
      </td>
      <td class="number">{row.ratio_blocks}</td>
      <td class="number">{ratio(row.theory)}</td>
      <td>{clean(fidelityWords(line))}</td>
      <td>
        <Text value={row.provisional ? null : pair.reason} />
        {pair.as_printed ? null : (
          <small class="below">measured at an overlay MTU that was asked for, where the publication printed none</small>
        )}
      </td>
      <td>
        <Text value={[...pair.flaws, ...pair.notes].join(". ") || null} />
      </td>
    </tr>
  );
}

const Between = ({ low, high }: { low: number | null; high: number | null }) =>
  low === null || high === null ? null : (
    <small class="below">
      {ratio(low)} to {ratio(high)}
    </small>
  );
