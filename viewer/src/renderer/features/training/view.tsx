/** Drills: the one at hand as whoever is on call sees it, all attempts, and one of them replayed. */
import type { AttemptRow } from "../../../contract/training";
import { useNow } from "../../state/now";
import { useQuery } from "../../state/query";
import { filterOf, keepFilter } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Choice, distinct, still } from "../../ui/choice";
import { AttemptsTable } from "./attempts-table";
import { Board } from "./board";
import { byDrill } from "./drills";
import { DrillsTable } from "./drills-table";
import { Replay } from "./replay";
import { SILENT_S, silence } from "./words";

interface Kept {
  drill: string | null;
  trainee: string | null;
  attempt: string | null;
}
const OTHERWISE: Kept = { drill: null, trainee: null, attempt: null };
const choose = (part: Partial<Kept>): void => keepFilter("training", { ...filterOf("training", OTHERWISE), ...part });

const isWatched = (attempt: AttemptRow): boolean => (silence(attempt, Date.now() / 1000) ?? SILENT_S) < SILENT_S;

export function View() {
  const asked = useQuery("attempts", {});
  return (
    <Rows
      asked={asked}
      empty="This file holds no attempt at a drill yet. ./task drill:list shows the drills, ./task drill:start begins one."
    >
      {(attempts) => <Found attempts={attempts} />}
    </Rows>
  );
}

function Found({ attempts }: { attempts: AttemptRow[] }) {
  const atHand = attempts.filter(({ state }) => state === "running");
  const now = useNow(atHand.some(isWatched), 1_000);
  return (
    <>
      {atHand.map((attempt) => (
        <Board key={attempt.attempt_id} attempt={attempt} now={now} />
      ))}
      <History attempts={attempts} now={now} />
    </>
  );
}

function History({ attempts, now }: { attempts: AttemptRow[]; now: number }) {
  const kept = filterOf("training", OTHERWISE);
  const drills = byDrill(attempts);
  const drill = still(
    kept.drill,
    drills.map((each) => each.drill),
  );
  const trainees = distinct(attempts, ({ trainee }) => trainee);
  const trainee = still(kept.trainee, trainees);
  const listed = attempts.filter(
    (each) => (drill === null || each.drill === drill) && (trainee === null || each.trainee === trainee),
  );
  const ended = listed.filter(({ state }) => state !== "running");
  // One that was abandoned may have nothing to show.
  const chosen =
    ended.find(({ attempt_id }) => attempt_id === kept.attempt) ??
    ended.find(({ state }) => state !== "abandoned") ??
    ended[0];
  return (
    <>
      <h2>Drills that were tried</h2>
      <DrillsTable
        drills={drills}
        chosen={drill}
        onChoose={(each) => choose({ drill: each === drill ? null : each, attempt: null })}
      />
      <h2 class="next">Attempts</h2>
      <div class="filters">
        <Choice
          label="Drill"
          value={drill}
          all="all"
          options={drills.map((each) => each.drill)}
          onChoose={(each) => choose({ drill: each, attempt: null })}
        />
        <Choice
          label="Trainee"
          value={trainee}
          all="all"
          options={trainees}
          onChoose={(each) => choose({ trainee: each, attempt: null })}
        />
      </div>
      {listed.length ? (
        <AttemptsTable
          attempts={listed}
          now={now}
          chosen={chosen?.attempt_id ?? null}
          onChoose={({ attempt_id }) => choose({ attempt: attempt_id })}
        />
      ) : (
        <p class="empty">No attempt matches. Choose another drill or trainee.</p>
      )}
      {chosen ? <Replay key={chosen.attempt_id} attempt={chosen} /> : null}
    </>
  );
}
