/** What happened in an attempt, one line for each event. */
import type { AttemptEventRow } from "../../../contract/training";
import { clean } from "../../lib/text";
import { number, ratio } from "../../lib/units";
import { TableScroll } from "../../ui/copied";
import { Text } from "../../ui/text";
import { type Check, checkOf, type Finding, hintOf, marksOf, type Refusal, stepOf } from "./events";
import { clock } from "./words";

export function Timeline({ events, label }: { events: readonly AttemptEventRow[]; label: string }) {
  const marks = marksOf(events);
  return (
    <TableScroll label={label}>
      <table>
        <thead>
          <tr>
            {["Since the ticket", "What", "Said"].map((title) => (
              <th scope="col">{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {events.map((event, at) => (
            <tr key={event.ordinal}>
              <td class="number nowrap">{clock(event.t)}</td>
              <td>{clean(marks[at]?.words ?? event.kind, 120)}</td>
              <td>
                <Said event={event} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  );
}

function Said({ event }: { event: AttemptEventRow }) {
  if (event.kind === "hint") return <Text value={hintOf(event)?.text.trim() ?? null} most={1000} />;
  if (event.kind === "check") {
    const check = checkOf(event);
    return check === null ? <>–</> : <Checked check={check} />;
  }
  if (event.kind === "solved-step") {
    const step = stepOf(event);
    return step === null ? (
      <>–</>
    ) : (
      <>
        <Text value={step.does.trim()} />
        {Object.entries(step.changes ?? {}).map(([node, lines]) => (
          <div class="lines" key={node}>
            {clean(node, 40)}: <Text value={lines.join("\n")} most={1000} />
          </div>
        ))}
      </>
    );
  }
  return <>–</>;
}

/** What does not pass first. */
function Checked({ check: { findings = [], refusals = [] } }: { check: Check }) {
  const lines = [...findings.map(findingLine), ...refusals.map(refusalLine)];
  return (
    <ul class="checked">
      {[...lines.filter(({ passes }) => !passes), ...lines.filter(({ passes }) => passes)].map(({ passes, words }) => (
        <li class={passes ? "quiet" : "bad"}>
          {passes ? "passes" : "fails"}: <Text value={words} most={300} />
        </li>
      ))}
    </ul>
  );
}

const findingLine = ({ measure, role, ratio: found, at_least, at_most, passes, reason }: Finding) => ({
  passes,
  words: [
    `${measure} from the ${role}`,
    found === null ? null : `${ratio(found)} of healthy`,
    !passes ? reason : at_least == null ? null : `at least ${number(at_least)} asked`,
    !passes || at_most == null ? null : `at most ${number(at_most)} asked`,
  ]
    .filter(Boolean)
    .join(", "),
});

const refusalLine = ({ guard, reason }: Refusal) => ({ passes: false, words: `guard ${guard}: ${reason}` });
