/** The trial's values, in short: of the whole trial, of its intervals, and the tool's own percentiles. */
import type { TrialFacts, TrialSampleRow } from "../../../contract/evidence";
import { number, scaleOf, withUnit } from "../../lib/units";
import { useQuery } from "../../state/query";
import { settings, show } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Copied } from "../../ui/copied";

export function Samples({ facts }: { facts: TrialFacts }) {
  const asked = useQuery(
    "trial_samples",
    facts.status === "planned" || facts.status === "running" ? null : { trial: facts.trial_id },
  );
  if (facts.status === "planned" || facts.status === "running") return <p class="empty">Not measured yet.</p>;
  return (
    <Rows asked={asked} empty="It gave no value.">
      {(rows) => (
        <details open>
          <summary>
            <h3>Values{facts.status === "void" ? ", in no plot and no verdict" : ""}</h3>
          </summary>
          <Copied>
            <table>
              <thead>
                <tr>
                  {["Metric", "Of", "Value", "Smallest", "Largest", "The tool's step"].map((title, at) => (
                    <th scope="col" class={at < 2 ? "" : "number"}>
                      {title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <Row key={`${row.metric} ${row.quantile} ${row.whole}`} row={row} />
                ))}
              </tbody>
            </table>
          </Copied>
          {rows.some(({ whole }) => !whole) && facts.status === "ok" ? (
            <button type="button" class="link" onClick={() => show("time")}>
              Its intervals over time
            </button>
          ) : null}
        </details>
      )}
    </Rows>
  );
}

function Row({ row }: { row: TrialSampleRow }) {
  const scale = scaleOf(row.unit, [row.high], settings.value);
  const of =
    row.quantile !== null
      ? `${number(row.quantile * 100)} % of the tool's own`
      : row.whole
        ? "the whole trial"
        : row.n === 1
          ? "its only interval"
          : `${row.n} intervals, mean`;
  return (
    <tr>
      <td>{row.metric.replace(/_/g, " ")}</td>
      <td>{of}</td>
      <td class="number">{withUnit(row.mean, scale)}</td>
      <td class="number">{row.n > 1 ? withUnit(row.low, scale) : ""}</td>
      <td class="number">{row.n > 1 ? withUnit(row.high, scale) : ""}</td>
      <td class="number">
        {row.resolution === null ? "–" : withUnit(row.resolution, scaleOf(row.unit, [row.resolution], settings.value))}
      </td>
    </tr>
  );
}
