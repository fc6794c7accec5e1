/** One attempt that has ended, from its ticket to its end: at once, or as it went; and what it teaches. */
import { useEffect, useState } from "preact/hooks";
import type { AttemptEventRow, AttemptRow, LevelRow, SliceRow } from "../../../contract/training";
import { clean } from "../../lib/text";
import { time } from "../../lib/units";
import { useQuery } from "../../state/query";
import { Rows } from "../../ui/asked";
import { SLICES, Ticket, WHOLE } from "./board";
import { Debrief } from "./debrief";
import { marksOf } from "./events";
import { Graphs } from "./graphs";
import { spanOf } from "./marks";
import { Timeline } from "./timeline";
import { clock, placeWords, stateWords } from "./words";

export function Replay({ attempt }: { attempt: AttemptRow }) {
  const events = useQuery("attempt_events", { attempt: attempt.attempt_id });
  const slices = useQuery("attempt_slices", { attempt: attempt.attempt_id, last: WHOLE, slices: SLICES });
  const levels = useQuery("attempt_levels", { attempt: attempt.attempt_id, passes: 1 });
  return (
    <section class="details" aria-label="The chosen attempt">
      <h2>
        {clean(attempt.title, 120)} <small class="quiet">{time(attempt.started_at)}</small>
      </h2>
      <p>
        {attempt.trainee === null ? "" : `${clean(attempt.trainee, 60)}: `}
        <strong>{stateWords(attempt.state)}</strong>
        {attempt.duration === null ? "" : ` after ${clock(attempt.duration)}`}
        {attempt.score === null ? "" : `, ${attempt.score} of 100 points`}; {attempt.hints}{" "}
        {attempt.hints === 1 ? "hint" : "hints"}, {attempt.failed_checks} failed{" "}
        {attempt.failed_checks === 1 ? "check" : "checks"}. A trained engineer needs {attempt.minutes} min.
      </p>
      <p class="quiet">{placeWords(attempt)}</p>
      <Rows asked={events} empty="Nothing of it was stored.">
        {(rows) => (
          <>
            <div class="ticket">
              <h3>Ticket</h3>
              <Ticket events={rows} />
            </div>
            <Rows asked={slices} empty="Nothing was measured in it.">
              {(measured) => <Played attempt={attempt} events={rows} slices={measured} levels={levels.rows ?? NONE} />}
            </Rows>
          </>
        )}
      </Rows>
    </section>
  );
}

const NONE: LevelRow[] = [];
const STEP_MS = 500;
/** Steps in which the whole attempt is played. */
const STEPS = 60;

function Played({
  attempt,
  events,
  slices,
  levels,
}: {
  attempt: AttemptRow;
  events: readonly AttemptEventRow[];
  slices: readonly SliceRow[];
  levels: readonly LevelRow[];
}) {
  const span = spanOf(slices, events);
  // Null: all of it.
  const [until, setUntil] = useState<number | null>(null);
  const [playing, setPlaying] = useState(false);
  const at = until ?? span.to;
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      const next = at + (span.to - span.from) / STEPS;
      setUntil(next < span.to ? next : null);
      setPlaying(next < span.to);
    }, STEP_MS);
    return () => clearInterval(timer);
  }, [playing, at]);
  const past = events.filter(({ t }) => t <= at);
  return (
    <>
      <p class="player">
        <button
          type="button"
          onClick={() => {
            if (until === null) setUntil(span.from);
            setPlaying(!playing);
          }}
        >
          {playing ? "Pause" : "Replay"}
        </button>{" "}
        <input
          type="range"
          min={span.from}
          max={span.to}
          step="any"
          value={at}
          aria-label="Until when the attempt is shown"
          aria-valuetext={clock(at)}
          onInput={(event) => {
            const wanted = Number(event.currentTarget.value);
            setPlaying(false);
            setUntil(wanted < span.to ? wanted : null);
          }}
        />{" "}
        <span class="quiet">
          until {clock(at)} of {clock(span.to)}
        </span>
      </p>
      <Graphs
        rows={until === null ? slices : slices.filter(({ t }) => t <= at)}
        levels={levels}
        marks={marksOf(past)}
        span={span}
      />
      <Timeline events={past} label="What happened" />
      {until === null ? (
        <Debrief attempt={attempt} events={events} />
      ) : (
        <p class="quiet">The debrief comes at the end.</p>
      )}
    </>
  );
}
