/** The drill at hand, as a pager's dashboard: ticket, clock, what the service is like now, what was asked and checked. */
import type { AttemptEventRow, AttemptRow, LevelRow } from "../../../contract/training";
import { clean } from "../../lib/text";
import { duration, ratio, scaleOf, withUnit } from "../../lib/units";
import { useQuery } from "../../state/query";
import { settings } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Copied } from "../../ui/copied";
import { Text } from "../../ui/text";
import { marksOf, ticketOf } from "./events";
import { Graphs } from "./graphs";
import { spanOf } from "./marks";
import { Timeline } from "./timeline";
import { clock, elapsed, placeWords, SILENT_S, silence } from "./words";

/** Of the prober, that make up "now". */
const PASSES = 5;
/** Slices of a plot: more than its pixels bear. */
export const SLICES = 400;
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
      <Now attempt={attempt} />
      <Live attempt={attempt} events={events.rows ?? []} since={since ?? 0} />
      <Rows asked={events} empty="Nothing has happened yet.">
        {(rows) => <Timeline events={rows} />}
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

/** No verdict: what passes is for ./task drill:check to say. */
function Now({ attempt }: { attempt: AttemptRow }) {
  const asked = useQuery("attempt_levels", { attempt: attempt.attempt_id, passes: PASSES });
  return (
    <Rows asked={asked} empty="Nothing was measured yet.">
      {(rows) => (
        <Copied>
          <table class="dense">
            <thead>
              <tr>
                {["Measure", "From", "Healthy", `Now (${PASSES} passes)`, "Now to healthy", "Why"].map((title) => (
                  <th scope="col">{title}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows
                .filter(({ level }) => level === "now")
                .map((row) => (
                  <Level key={`${row.measure} ${row.node}`} now={row} healthy={healthyOf(row, rows)} />
                ))}
            </tbody>
          </table>
        </Copied>
      )}
    </Rows>
  );
}

const healthyOf = (of: LevelRow, rows: readonly LevelRow[]): number | null =>
  rows.find(({ level, measure, node }) => level === "healthy" && measure === of.measure && node === of.node)?.value ??
  null;

function Level({ now, healthy }: { now: LevelRow; healthy: number | null }) {
  const scale = scaleOf(now.unit, [now.value, healthy], settings.value);
  return (
    <tr>
      <td title={clean(now.description, 200)}>{clean(now.measure, 40)}</td>
      <td>
        {clean(now.node, 40)} ({now.role})
      </td>
      <td class="number">{withUnit(healthy, scale)}</td>
      <td class="number">{now.value === null ? "not measured" : withUnit(now.value, scale)}</td>
      <td class="number">{now.value === null || !healthy ? "–" : ratio(now.value / healthy)}</td>
      <td>
        <Text value={now.reason} most={80} />
      </td>
    </tr>
  );
}

function Live({ attempt, events, since }: { attempt: AttemptRow; events: AttemptEventRow[]; since: number }) {
  const slices = useQuery("attempt_slices", { attempt: attempt.attempt_id, slices: SLICES });
  const levels = useQuery("attempt_levels", { attempt: attempt.attempt_id, passes: PASSES });
  if (slices.rows === null) return null;
  const marks = marksOf(events);
  const until = Math.ceil(Math.min(since, (attempt.last_t ?? 0) + SILENT_S) / AXIS_STEP) * AXIS_STEP;
  return (
    <Graphs rows={slices.rows} levels={levels.rows ?? NONE} marks={marks} span={spanOf(slices.rows, marks, until)} />
  );
}

const NONE: LevelRow[] = [];
