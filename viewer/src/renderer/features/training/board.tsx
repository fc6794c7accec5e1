/** The drill at hand, as a pager's dashboard: ticket, clock, what the service is like now, what was asked and checked. */
import type { AttemptEventRow, AttemptRow } from "../../../contract/training";
import { clean } from "../../lib/text";
import { duration } from "../../lib/units";
import { useQuery } from "../../state/query";
import { Rows } from "../../ui/asked";
import { Text } from "../../ui/text";
import { marksOf, ticketOf } from "./events";
import { Graphs } from "./graphs";
import { Levels } from "./levels";
import { spanOf } from "./marks";
import { Timeline } from "./timeline";
import { clock, elapsed, placeWords, SILENT_S, silence } from "./words";

/** Of the prober, that make up "now". */
const PASSES = 5;
/** Slices of a plot: more than its pixels bear. */
export const SLICES = 400;
/** s that are drawn of a drill at hand, as all of it is read again with every pass; of one that has ended all is. */
const WINDOW = 30 * 60;
export const WHOLE = 1e9;
/** s: the plots' axis grows by so much, not with every second. */
const AXIS_STEP = 30;

export function Board({ attempt, now }: { attempt: AttemptRow; now: number }) {
  const events = useQuery("attempt_events", { attempt: attempt.attempt_id });
  const since = elapsed(attempt, now);
  const silent = silence(attempt, now);
  return (
    <section class="board" aria-label="The drill at hand">
      <h2>
        At hand: {clean(attempt.title, 120)} <small class="quiet">level {attempt.level}</small>
      </h2>
      <div class="board-head">
        <div class="ticket">
          <h3>Ticket</h3>
          <Ticket events={events.rows ?? []} />
          <p class="quiet">{placeWords(attempt)}</p>
        </div>
        <div class="clock" role="timer" aria-label="Time since the ticket">
          <strong>{clock(since)}</strong>
          <p class="quiet">
            since the ticket; a trained engineer needs {attempt.minutes} min.{" "}
            {attempt.trainee === null ? "" : `On call: ${clean(attempt.trainee, 60)}.`}
          </p>
          <p class="quiet">
            {attempt.hints} {attempt.hints === 1 ? "hint" : "hints"} taken, {attempt.failed_checks} failed{" "}
            {attempt.failed_checks === 1 ? "check" : "checks"}
          </p>
        </div>
      </div>
      {silent !== null && silent > SILENT_S ? (
        <p class="note" role="note">
          Nothing was measured for {duration(silent)}: the nodes are gone, or the drill was killed. ./task drill:status
          says which.
        </p>
      ) : null}
      <Live attempt={attempt} events={events.rows ?? []} since={since ?? 0} />
      <Rows asked={events} empty="Nothing has happened yet.">
        {(rows) => <Timeline events={rows} label="What happened so far" />}
      </Rows>
    </section>
  );
}

export function Ticket({ events }: { events: readonly AttemptEventRow[] }) {
  const event = events.find(({ kind }) => kind === "ticket");
  const ticket = event ? ticketOf(event) : null;
  if (ticket === null) return <p class="quiet">Its text is not in this file.</p>;
  return (
    <>
      <p class="lines">
        <Text value={ticket.ticket.trim()} most={2000} />
      </p>
      {ticket.may_touch ? (
        <p class="quiet">
          May be touched: <Text value={ticket.may_touch} />
        </p>
      ) : null}
    </>
  );
}

function Live({ attempt, events, since }: { attempt: AttemptRow; events: AttemptEventRow[]; since: number }) {
  const slices = useQuery("attempt_slices", { attempt: attempt.attempt_id, last: WINDOW, slices: SLICES });
  const levels = useQuery("attempt_levels", { attempt: attempt.attempt_id, passes: PASSES });
  if (slices.rows === null || levels.rows === null)
    return (
      <Rows asked={slices} empty="">
        {() => null}
      </Rows>
    );
  const marks = marksOf(events);
  const until = Math.ceil(Math.min(since, (attempt.last_t ?? 0) + SILENT_S) / AXIS_STEP) * AXIS_STEP;
  const { from, to } = spanOf(slices.rows, marks, until);
  return (
    <Graphs rows={slices.rows} levels={levels.rows} marks={marks} span={{ from: Math.max(from, to - WINDOW), to }}>
      <Levels rows={levels.rows} passes={PASSES} />
    </Graphs>
  );
}
