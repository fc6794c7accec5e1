/** Publications: the numbers that were printed, drawn against their own host, and what is wrong with them. */
import { useMemo } from "preact/hooks";
import type { PublicationFlawRow, PublicationPrecisionRow, PublicationValueRow } from "../../../contract/publications";
import { clean } from "../../lib/text";
import { scaleOf, withUnit } from "../../lib/units";
import { useQuery } from "../../state/query";
import { filterOf, keepFilter, settings } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choice, distinct, still } from "../../ui/choice";
import { TableScroll } from "../../ui/copied";
import { Text } from "../../ui/text";
import { flawsOf, linesOf, publication, tierName, variantName } from "./figure";

const OTHERWISE = {
  publication: null as string | null,
  cloud: null as string | null,
  instance: null as string | null,
  metric: null as string | null,
};
type Kept = typeof OTHERWISE;
const choose = (part: Partial<Kept>): void =>
  keepFilter("publications", { ...filterOf("publications", OTHERWISE), ...part });

const metricOf = ({ metric, protocol }: PublicationValueRow): string =>
  [protocol?.toUpperCase(), metric.replaceAll("_", " ")].filter(Boolean).join(" ");

export function View() {
  const flaws = useQuery("publication_flaws", {});
  const precision = useQuery("publication_precision", {});
  return (
    <>
      <h2>What was published</h2>
      <Rows
        asked={useQuery("publication_values", {})}
        empty="This file holds no published numbers. A checkout of overlaylab puts them in when it opens it to write."
      >
        {(rows) => <Printed rows={rows} flaws={flaws.rows ?? []} precision={precision.rows ?? []} />}
      </Rows>
    </>
  );
}

function Printed({
  rows,
  flaws,
  precision,
}: {
  rows: PublicationValueRow[];
  flaws: PublicationFlawRow[];
  precision: PublicationPrecisionRow[];
}) {
  const kept = filterOf("publications", OTHERWISE);
  const names = [...new Set(rows.map((row) => row.publication))];
  const name = still(kept.publication, names) ?? names[0] ?? null;
  const own = rows.filter((row) => row.publication === name);
  const clouds = distinct(own, ({ cloud }) => cloud);
  const cloud = still(kept.cloud, clouds);
  const inCloud = own.filter((row) => cloud === null || row.cloud === cloud);
  const instances = distinct(inCloud, ({ instance }) => instance);
  const instance = still(kept.instance, instances);
  const here = inCloud.filter((row) => instance === null || row.instance === instance);
  const measured = here.filter(({ statistic }) => statistic !== "documented");
  const metrics = [...new Set(measured.map(metricOf))];
  const metric = still(kept.metric, metrics) ?? metrics[0] ?? null;
  const shown = measured.filter((row) => metricOf(row) === metric);
  const { rateUnit, timeUnit } = settings.value;
  const lines = linesOf(shown);
  const figure = useMemo(
    () => (shown.length ? publication(lines, { rateUnit, timeUnit }) : null),
    [rows, name, cloud, instance, metric, rateUnit, timeUnit],
  );
  return (
    <>
      <div class="filters">
        <Choice
          label="Publication"
          value={name}
          options={names}
          onChoose={(value) => choose({ publication: value, cloud: null, instance: null })}
        />
        <Choice
          label="Cloud"
          value={cloud}
          options={clouds}
          all="all"
          onChoose={(value) => choose({ cloud: value, instance: null })}
        />
        <Choice
          label="Instance"
          value={instance}
          options={instances}
          all="all"
          onChoose={(value) => choose({ instance: value })}
        />
        <Choice label="Metric" value={metric} options={metrics} onChoose={(value) => choose({ metric: value })} />
      </div>
      {figure ? (
        <Chart figure={figure} height={Math.max(220, 110 + lines.length * 26)} />
      ) : (
        <p class="empty">Nothing was measured here: these are numbers that the cloud documents.</p>
      )}
      <Wrong flaws={flawsOf(flaws, shown)} shown={shown} precision={precision} />
      <div class="details">
        <h3>
          All figures of {name === null ? "it" : clean(name)}
          {instance ? ` on ${clean(instance)}` : ""}
        </h3>
      </div>
      <Figures rows={here} />
    </>
  );
}

const concerns = (flaw: PublicationFlawRow): string =>
  [
    tierName(flaw),
    [flaw.overlay, flaw.mode].filter(Boolean).join(" "),
    [flaw.protocol?.toUpperCase(), flaw.metric?.replaceAll("_", " ")].filter(Boolean).join(" "),
  ]
    .filter(Boolean)
    .join(", ") || "all of it";

function Wrong({
  flaws,
  shown,
  precision,
}: {
  flaws: PublicationFlawRow[];
  shown: PublicationValueRow[];
  precision: PublicationPrecisionRow[];
}) {
  const printed = precision.filter((each) =>
    shown.some(
      (row) =>
        row.publication === each.publication &&
        row.tool === each.tool &&
        row.protocol === each.protocol &&
        row.metric === each.metric,
    ),
  );
  return (
    <section class="details">
      <h3>What is wrong with these numbers</h3>
      {flaws.length ? (
        <ul>
          {flaws.map((flaw) => (
            <li>
              <strong>{clean(concerns(flaw))}:</strong> <Text value={flaw.flaw} />.
            </li>
          ))}
        </ul>
      ) : (
        <p class="quiet">Nothing is known to be wrong with them, beyond how exactly they were printed.</p>
      )}
      {printed.length ? (
        <>
          <h3>How exactly they were printed</h3>
          <ul>
            {printed.map((each) => (
              <li>
                {clean(each.tool)}, {each.protocol.toUpperCase()} {clean(each.metric.replaceAll("_", " "))}:{" "}
                {each.digits} digits of {clean(each.printed_unit)}; <Text value={each.why} />.
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </section>
  );
}

const HEADINGS = ["Tier", "Overlay", "Metric", "Value", "Statistic", "Tool and parameters", "Note"];

function Figures({ rows }: { rows: PublicationValueRow[] }) {
  return (
    <TableScroll label="Published figures">
      <table class="wide">
        <thead>
          <tr>
            {HEADINGS.map((word) => (
              <th scope="col" class={word === "Value" ? "number" : ""}>
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, 1000).map((row) => (
            <tr>
              <td>{clean(tierName(row))}</td>
              <td>
                {clean(variantName(row))}
                {row.overlay_version ? <small class="below">version {clean(row.overlay_version)}</small> : null}
              </td>
              <td>{clean(metricOf(row))}</td>
              <td class="number nowrap">{withUnit(row.value, scaleOf(row.unit, [row.value], settings.value))}</td>
              <td>
                {clean(row.statistic.replaceAll("_", " "))}
                {row.repetition === null ? "" : `, run ${row.repetition}`}
              </td>
              <td>
                <Text value={[row.tool, row.parameters].filter(Boolean).join(": ") || null} />
              </td>
              <td>
                <Text value={row.note} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}
