/** What the service is like now, beside what it was on the healthy nodes. No verdict: that is for ./task drill:check to say. */
import type { LevelRow } from "../../../contract/training";
import { clean } from "../../lib/text";
import { ratio, scaleOf, withUnit } from "../../lib/units";
import { settings } from "../../state/state";
import { Copied } from "../../ui/copied";
import { Text } from "../../ui/text";

const ROLES = ["client", "server"] as const;

/** passes: of the prober, that make up "now". */
export function Levels({ rows, passes }: { rows: readonly LevelRow[]; passes: number }) {
  const measures = [...new Set(rows.map(({ measure }) => measure))];
  const why = rows.filter(({ level, reason }) => level === "now" && reason !== null);
  return (
    <div>
      <h3>Now: the newest {passes} passes</h3>
      <Copied>
        <table class="dense">
          <thead>
            <tr>
              <th scope="col">Measure</th>
              {ROLES.flatMap((role) => [
                <th scope="col" class="number" key={role}>
                  {role}
                </th>,
                <th
                  scope="col"
                  class="number"
                  key={`${role} healthy`}
                  title={`Over what the ${role} had while all was well`}
                >
                  to healthy
                </th>,
              ])}
            </tr>
          </thead>
          <tbody>
            {measures.map((measure) => (
              <Measure key={measure} rows={rows.filter((row) => row.measure === measure)} />
            ))}
          </tbody>
        </table>
      </Copied>
      {why.map(({ measure, role, reason }) => (
        <p class="quiet" key={`${measure} ${role}`}>
          {clean(measure, 40)} from the {role}: <Text value={reason} most={100} />
        </p>
      ))}
    </div>
  );
}

function Measure({ rows }: { rows: readonly LevelRow[] }) {
  const [first] = rows;
  if (!first) return null;
  const value = (role: string, level: string) =>
    rows.find((row) => row.role === role && row.level === level)?.value ?? null;
  return (
    <tr>
      <td title={clean(first.description, 200)}>{clean(first.measure, 40)}</td>
      {ROLES.flatMap((role) => {
        const [now, healthy] = [value(role, "now"), value(role, "healthy")];
        return [
          <td class="number nowrap" key={role}>
            {withUnit(now, scaleOf(first.unit, [now], settings.value))}
          </td>,
          <td class="number" key={`${role} healthy`}>
            {now === null || !healthy ? "–" : ratio(now / healthy)}
          </td>,
        ];
      })}
    </tr>
  );
}
