/** One trial: facts, how it was called, values, proof of its data path, node state, raw output. */
import type { TrialFacts } from "../../../contract/evidence";
import type { RunRow } from "../../../contract/run";
import { plainLines } from "../../../contract/text";
import { fields, list, oneLine, parsed, text } from "../../lib/json";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { time } from "../../lib/units";
import { copy } from "../../state/clipboard";
import { useQuery } from "../../state/query";
import { CheckTable } from "../../ui/check-table";
import { Copied } from "../../ui/copied";
import { Text } from "../../ui/text";
import { Cell } from "./cell";
import { NodeStates } from "./node-states";
import { Output } from "./output";
import { Proof } from "./proof";
import { Samples } from "./samples";
import { commandLine } from "./shell";

export function TrialDetails({ facts, run }: { facts: TrialFacts; run: RunRow }) {
  const argv = parsed(facts.argv, list(text));
  return (
    <>
      <div class="trial-head">
        <h2>
          {clean(facts.benchmark, 60)}{" "}
          <small class="quiet">
            {variantWords(facts)}, block {facts.block}, repetition {facts.repetition}
          </small>
        </h2>
        <Cell trial={facts.trial_id} />
      </div>
      {facts.reason ? (
        <p class="problem" role="note">
          <strong>
            {facts.status === "void" ? "Void: withdrawn, and in no plot." : "Failed: it gave no measurement."}
          </strong>{" "}
          <Text value={facts.reason} most={2000} />
        </p>
      ) : null}
      <Facts facts={facts} run={run} />
      {argv ? (
        <section aria-label="Command">
          <div class="trial-head">
            <h3>Command</h3>
            <button type="button" onClick={() => void copy(commandLine(argv))}>
              Copy
            </button>
          </div>
          <pre>{plainLines(commandLine(argv)).slice(0, 20_000)}</pre>
        </section>
      ) : null}
      <Samples facts={facts} />
      <Proof trial={facts.trial_id} />
      <Checks trial={facts.trial_id} profile={run.profile} />
      <NodeStates facts={facts} />
      <Output trial={facts.trial_id} output="stdout" title="Standard output" length={facts.stdout_length} />
      <Output trial={facts.trial_id} output="stderr" title="Standard error" length={facts.stderr_length} />
    </>
  );
}

const bytes = (found: number | null): string => (found === null ? "not known" : `${found} bytes`);

function Facts({ facts, run }: { facts: TrialFacts; run: RunRow }) {
  const nodes =
    facts.client_node === facts.server_node
      ? `within ${facts.client_node}`
      : `${facts.client_node} (client) and ${facts.server_node} (server)`;
  const rows: [string, string | null][] = [
    [
      "Trial",
      `${facts.trial_id}, position ${facts.position + 1} of block ${facts.block}${facts.warmup ? ", a warm-up: not counted" : ""}`,
    ],
    ["Status", facts.exit_code === null ? facts.status : `${facts.status}, exit code ${facts.exit_code}`],
    [
      "Ran",
      facts.started_at === null
        ? "not yet"
        : `${time(facts.started_at)}${facts.duration === null ? "" : `, for ${facts.duration.toFixed(2)} s`}`,
    ],
    ["Where", `${nodes}, ${facts.placement}, data goes ${facts.direction.replace(/-/g, " ")}`],
    ["Overlay", `${variantWords(facts)}${facts.overlay_version === null ? "" : `, version ${facts.overlay_version}`}`],
    [
      "MTU",
      `underlay ${bytes(facts.underlay_mtu)}${facts.overlay === "host" ? "" : `, overlay ${bytes(facts.overlay_mtu)}`}`,
    ],
    ["Tool", `${facts.tool}${facts.tool_version === null ? "" : `, ${facts.tool_version}`}`],
    [
      "Parameters",
      Object.entries(fields(facts.parameters))
        .map(([name, found]) => `${name} ${oneLine(found)}`)
        .join(", "),
    ],
    ["Profile", `${run.profile}, on ${run.provider} (${run.accelerator})`],
  ];
  return (
    <Copied>
      <table class="facts">
        <tbody>
          {rows.map(([name, found]) => (
            <tr>
              <th scope="row">{name}</th>
              <td>
                <Text value={found} most={400} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Copied>
  );
}

function Checks({ trial, profile }: { trial: number; profile: string }) {
  const asked = useQuery("trial_checks", { trial });
  const rows = asked.rows ?? [];
  if (rows.length === 0) return null;
  const bad = rows.filter(({ verdict }) => verdict === "fail").length;
  return (
    <details open={bad > 0}>
      <summary>
        <h3>
          The profile {clean(profile, 40)} when last checked before:{" "}
          {bad ? `${bad} of ${rows.length} checks failed` : "nothing failed"}
        </h3>
      </summary>
      <CheckTable rows={rows} />
    </details>
  );
}
