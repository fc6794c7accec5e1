/** What an attempt teaches, told once it has ended: the trainee's cause beside the true one. */
import type { AttemptEventRow, AttemptRow } from "../../../contract/training";
import { clean } from "../../lib/text";
import { Text } from "../../ui/text";
import { debriefOf } from "./events";
import { blocksOf, type Part } from "./markdown";

export function Debrief({ attempt, events }: { attempt: AttemptRow; events: readonly AttemptEventRow[] }) {
  if (attempt.hidden)
    return (
      <p class="note" role="note">
        This drill is at hand in another attempt: cause, hints and debrief are shown once that has ended.
      </p>
    );
  const found = debriefOf(events);
  return (
    <section class="debrief" aria-label="Debrief">
      <h3>Debrief</h3>
      {attempt.cause === null ? null : (
        <p>
          <strong>The trainee’s cause:</strong> <Text value={attempt.cause} most={500} />
        </p>
      )}
      {found?.topics?.length ? (
        <p>
          <strong>What it was about:</strong> {found.topics.map((topic) => clean(topic, 60)).join(", ")}
        </p>
      ) : null}
      {found?.debrief ? (
        <Markdown text={found.debrief} />
      ) : (
        <p class="quiet">
          {attempt.state === "abandoned"
            ? "The attempt was abandoned: nothing of the cause was stored."
            : "No debrief was stored."}
        </p>
      )}
      {found?.references?.length ? (
        <p class="quiet">To read: {found.references.map((reference) => clean(reference, 120)).join(", ")}</p>
      ) : null}
    </section>
  );
}

/** More than any drill has. */
const LONGEST = 20_000;

const Markdown = ({ text }: { text: string }) => (
  <>
    {blocksOf(text.slice(0, LONGEST)).map(({ kind, lines }) =>
      kind === "list" ? (
        <ul>
          {lines.map((parts) => (
            <li>
              <Parts parts={parts} />
            </li>
          ))}
        </ul>
      ) : kind === "code" ? (
        <pre>
          <Parts parts={lines[0] ?? []} />
        </pre>
      ) : (
        <p class={kind}>
          <Parts parts={lines[0] ?? []} />
        </p>
      ),
    )}
  </>
);

const Parts = ({ parts }: { parts: readonly Part[] }) => (
  <>
    {parts.map(({ as, text }) =>
      as === "code" ? (
        <code>{text}</code>
      ) : as === "strong" ? (
        <strong>{text}</strong>
      ) : as === "em" ? (
        <em>{text}</em>
      ) : (
        text
      ),
    )}
  </>
);
