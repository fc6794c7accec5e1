/** The nodes before and after the trial: what changed, and by how much. */
import { useMemo, useState } from "preact/hooks";
import type { TrialFacts } from "../../../contract/evidence";
import { clean } from "../../lib/text";
import { useQuery } from "../../state/query";
import { TableScroll } from "../../ui/copied";
import { Text } from "../../ui/text";
import { type NodeState, nodeStates, type StateRow } from "./node-state";
import { Output } from "./output";

/** What is longer is shown as it is: no run of ours writes so much. */
const MOST = 500_000;

export function NodeStates({ facts }: { facts: TrialFacts }) {
  const length = facts.node_state_length;
  const asked = useQuery(
    "trial_output",
    length !== null && length <= MOST ? { trial: facts.trial_id, output: "node_state", from: 0, most: MOST } : null,
  );
  const json = asked.rows?.[0]?.text ?? null;
  const nodes = useMemo(() => nodeStates(json), [json]);
  if (length === null) return null;
  if (asked.state === "waiting" && length <= MOST)
    return (
      <p class="waiting" role="status">
        Reading …
      </p>
    );
  return (
    <>
      {(nodes ?? []).map((node) => (
        <Node node={node} />
      ))}
      {nodes === null || nodes.length ? (
        <Output trial={facts.trial_id} output="node_state" title="Node state as it was kept" length={length} />
      ) : null}
    </>
  );
}

const shown = (value: string | number | null): string | null =>
  typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : value;
const difference = (value: number | null): string =>
  value === null || value === 0 ? "" : `${value > 0 ? "+" : "−"}${shown(Math.abs(value))}`;

function Node({ node }: { node: NodeState }) {
  const [all, setAll] = useState(false);
  const changed = node.values.filter((row) => row.changed);
  const rows = all ? node.values : changed;
  return (
    <details>
      <summary>
        <h3>
          {clean(node.node, 40)} before and after: {changed.length} of {node.values.length} values changed
          {node.qdiscs.length ? ", queues" : ""}
        </h3>
      </summary>
      {node.qdiscs.length ? <Queues node={node} /> : null}
      <Values rows={rows} label={`Values of ${clean(node.node, 40)}`} />
      {changed.length < node.values.length ? (
        <button type="button" aria-pressed={all} onClick={() => setAll(!all)}>
          {all ? "Only what changed" : `Also the ${node.values.length - changed.length} that did not change`}
        </button>
      ) : null}
    </details>
  );
}

const Head = ({ first }: { first: string[] }) => (
  <thead>
    <tr>
      {[...first, "Before", "After", "Difference"].map((title, at) => (
        <th scope="col" class={at < first.length ? "" : "number"}>
          {title}
        </th>
      ))}
    </tr>
  </thead>
);

function Values({ rows, label }: { rows: StateRow[]; label: string }) {
  return (
    <TableScroll label={label}>
      <table>
        <Head first={["Value"]} />
        <tbody>
          {rows.map((row) => (
            <tr key={row.path}>
              <td>
                <Text value={row.path} most={80} />
              </td>
              <td class="number">
                <Text value={shown(row.before)} most={60} />
              </td>
              <td class="number">
                <Text value={shown(row.after)} most={60} />
              </td>
              <td class="number">{difference(row.difference)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

/** Counters of tc's queueing disciplines; those that stayed zero are left out. */
function Queues({ node }: { node: NodeState }) {
  const rows = node.qdiscs.filter(({ before, after }) => before || after);
  return (
    <TableScroll label={`Queues of ${clean(node.node, 40)}`}>
      <table>
        <Head first={["Queueing discipline (tc)", "Counter"]} />
        <tbody>
          {rows.map((row, at) => (
            <tr key={`${row.name} ${row.counter}`}>
              <td>{rows[at - 1]?.name === row.name ? "" : <Text value={row.name} most={60} />}</td>
              <td>{row.counter}</td>
              <td class="number">{shown(row.before) ?? "–"}</td>
              <td class="number">{shown(row.after) ?? "–"}</td>
              <td class="number">{difference(row.difference)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}
