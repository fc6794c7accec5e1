/** Raw output as it was kept: read when it is unfolded, and a part at a time. */
import { useState } from "preact/hooks";
import type { OutputName } from "../../../contract/evidence";
import { plainLines } from "../../../contract/text";
import { scaleOf, withUnit } from "../../lib/units";
import { copy } from "../../state/clipboard";
import { useQuery } from "../../state/query";
import { settings } from "../../state/state";
import { ProblemBox } from "../../ui/problem";
import { Scroll } from "../../ui/scroll";

/** Characters that are laid out at once. */
const PART = 200_000;
/** Shorter ones are unfolded from the start. */
const SHORT = 2_000;

export function Output({
  trial,
  output,
  title,
  length,
}: {
  trial: number;
  output: OutputName;
  title: string;
  length: number | null;
}) {
  const [open, setOpen] = useState((length ?? 0) <= SHORT);
  if (length === null) return null;
  if (length === 0) return <p class="quiet">{title}: empty.</p>;
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h3>
          {title}, {withUnit(length, scaleOf("bytes", [length], settings.value))}
        </h3>
      </summary>
      {open ? <Part trial={trial} output={output} from={0} title={title} /> : null}
    </details>
  );
}

function Part({ trial, output, from, title }: { trial: number; output: OutputName; from: number; title: string }) {
  const [more, setMore] = useState(false);
  const asked = useQuery("trial_output", { trial, output, from, most: PART });
  if (asked.state === "failed") return <ProblemBox problem={asked.problem} />;
  if (asked.state === "waiting")
    return (
      <p class="waiting" role="status">
        Reading …
      </p>
    );
  const { text, length } = asked.rows[0] ?? { text: null, length: null };
  if (text === null) return <p class="quiet">Nothing was kept.</p>;
  const rest = (length ?? 0) - from - text.length;
  return (
    <>
      <Scroll as="pre" label={title} class="output">
        {plainLines(text)}
      </Scroll>
      <p class="tools">
        <button type="button" onClick={() => void copy(text)}>
          Copy{from > 0 || rest > 0 ? " this part" : ""}
        </button>
        {rest > 0 && !more ? (
          <button type="button" onClick={() => setMore(true)}>
            Show the next {Math.min(PART, rest)} of {rest} more characters
          </button>
        ) : null}
      </p>
      {more ? <Part trial={trial} output={output} from={from + text.length} title={title} /> : null}
    </>
  );
}
