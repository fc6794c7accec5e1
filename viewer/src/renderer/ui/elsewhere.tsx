/** The run has nothing for this view: what measures it, and which runs of the file have. */
import type { Queries, QueryName } from "../../contract/queries";
import type { RunRow } from "../../contract/run";
import { runTitle } from "../lib/run-words";
import { useQuery } from "../state/query";
import { chooseRun } from "../state/state";

const MOST = 5;

/** Questions of the whole file that answer with runs. */
type RunsQuestion = {
  [Name in QueryName]: Queries[Name] extends { parameters: Record<string, never>; row: { run_id: string } }
    ? Name
    : never;
}[QueryName];

export function ElsewhereMeasured({ question, empty }: { question: RunsQuestion; empty: string }) {
  const having = useQuery(question, {});
  const runs = useQuery("runs", {});
  const found = (having.rows ?? []).flatMap(({ run_id }) =>
    (runs.rows ?? []).filter((run: RunRow) => run.run_id === run_id),
  );
  return (
    <div class="empty">
      <p>{empty}</p>
      {found.length ? (
        <>
          <p>Runs in this file that did:</p>
          <ul>
            {found.slice(0, MOST).map((run) => (
              <li key={run.run_id}>
                <button type="button" class="link" onClick={() => chooseRun(run.run_id)}>
                  {runTitle(run)}
                </button>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </div>
  );
}
