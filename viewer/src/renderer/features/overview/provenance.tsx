/** Where a run came from: everything needed to do it again. Folded, as few ask. */
import type { RunRow } from "../../../contract/run";
import { fields, oneLine } from "../../lib/json";
import { time } from "../../lib/units";
import { copy } from "../../state/clipboard";
import { useQuery } from "../../state/query";
import { Text } from "../../ui/text";

export function Provenance({ run }: { run: RunRow }) {
  const versions = useQuery("run_versions", { run: run.run_id });
  const roles = Object.entries(fields(run.role_digests)).map(([name, digest]): [string, string] => [
    `Role ${name}`,
    oneLine(digest),
  ]);
  const asked = Object.entries(fields(run.arguments))
    .filter(([, found]) => found !== null)
    .map(([name, found]) => `${name}=${oneLine(found)}`);
  const nodes = Object.entries(fields(run.nodes)).map(([name, found]) => `${name}: ${oneLine(found)}`);
  const facts: [string, string | null][] = [
    ["Run", run.run_id],
    ["overlaylab", run.lab_version],
    ["system", run.system],
    ["node kit", run.kit],
    ["Planned", time(run.created_at)],
    ["Ran", `${time(run.started_at)} to ${time(run.ended_at)}`],
    ["Asked for", asked.join("\n")],
    ["Seed of the random order", String(run.seed)],
    ["Blocks", String(run.blocks)],
    ["Provider", run.provider],
    ["Nodes", nodes.join("\n")],
    ["Versions", (versions.rows ?? []).map(({ what, version }) => `${what}: ${version}`).join("\n")],
    ["Image", run.image],
    ["Profile", `${run.profile} ${run.profile_digest}`],
    ["Suite", `${run.suite} ${run.suite_digest}`],
    ...roles,
  ];
  return (
    <details>
      <summary>
        <h3>Where it came from: arguments, seed, versions, digests</h3>
      </summary>
      <table class="facts">
        <tbody>
          {facts.map(([name, found]) => (
            <tr>
              <th scope="row">{name}</th>
              <td>
                <Text value={found} most={2000} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <button
        type="button"
        onClick={() => void copy(facts.map(([name, found]) => `${name}\t${found ?? ""}`).join("\n"))}
      >
        Copy
      </button>
    </details>
  );
}
