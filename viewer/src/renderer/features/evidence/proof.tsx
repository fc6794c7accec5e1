/** Proof of the data path: what was expected and what was seen, before, during and after the trial. */
import type { EvidenceRow } from "../../../contract/evidence";
import { EVIDENCE } from "../../lib/evidence-kinds";
import { fields, oneLine } from "../../lib/json";
import { clean } from "../../lib/text";
import { useQuery } from "../../state/query";
import { Rows } from "../../ui/asked";
import { Copied } from "../../ui/copied";
import { Text } from "../../ui/text";

export function Proof({ trial }: { trial: number }) {
  const asked = useQuery("trial_evidence", { trial });
  return (
    <Rows asked={asked} empty="No evidence was taken for this trial.">
      {(rows) => {
        const bad = rows.filter(({ ok }) => !ok).length;
        return (
          <details open>
            <summary>
              <h3>
                Evidence: {bad ? `${bad} of ${rows.length} pieces did not hold` : `all ${rows.length} pieces held`}
              </h3>
            </summary>
            <Copied>
              <table class="wide proof">
                <thead>
                  <tr>
                    {["Held", "When", "What", "Node", "Expected", "Observed"].map((title) => (
                      <th scope="col">{title}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row) => (
                    <Piece key={row.evidence_id} row={row} />
                  ))}
                </tbody>
              </table>
            </Copied>
          </details>
        );
      }}
    </Rows>
  );
}

/** A list of texts reads better without JSON's quotes. */
const listed = (found: unknown): string =>
  Array.isArray(found) && found.every((each) => typeof each === "string") ? found.join(", ") || "none" : oneLine(found);

const words = (json: string): string =>
  Object.entries(fields(json))
    .map(([name, found]) => `${name.replace(/_/g, " ")}: ${listed(found)}`)
    .join("\n");

const Piece = ({ row }: { row: EvidenceRow }) => (
  <tr>
    <td class={row.ok ? "" : "verdict fail"}>{row.ok ? "yes" : "no"}</td>
    <td>{row.trial_id === null ? `${clean(row.phase, 20)}, outside trials` : clean(row.phase, 20)}</td>
    <td title={EVIDENCE[row.kind]}>{clean(row.kind, 30)}</td>
    <td>{clean(row.node, 30)}</td>
    <td class="lines">
      <Text value={words(row.expected)} most={160} />
    </td>
    <td class="lines">
      <Text value={words(row.observed)} most={160} />
      {row.reason === null ? null : (
        <div class="verdict fail">
          <Text value={row.reason} />
        </div>
      )}
    </td>
  </tr>
);
