/** Questions to the open file, as hooks: asked again when the file was written to, never shown for another file. */
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../../contract/answers";
import type { Parameters, QueryName, Row } from "../../contract/queries";
import { bridge } from "./bridge";
import { file } from "./state";

export type Asked<Found> =
  | { state: "waiting"; rows: null; problem: null }
  | { state: "ready"; rows: Found[]; problem: null }
  | { state: "failed"; rows: null; problem: Problem };

const WAITING = { state: "waiting", rows: null, problem: null } as const;

/** parameters null: not yet to be asked. While a file is written to, the old rows stay until the new ones are there. */
export function useQuery<Name extends QueryName>(
  name: Name,
  parameters: Parameters<Name> | null,
  of = file.value,
): Asked<Row<Name>> {
  const [asked, set] = useState<Asked<Row<Name>> & { key?: string }>(WAITING);
  const key = of && parameters ? JSON.stringify([of.id, name, parameters]) : "";
  useEffect(() => {
    if (!of || !parameters) return;
    let gone = false;
    void bridge.query(of.id, name, parameters).then((answer) => {
      if (gone) return;
      set(
        answer.ok
          ? { state: "ready", rows: answer.value, problem: null, key }
          : { state: "failed", rows: null, problem: answer.problem, key },
      );
    });
    return () => {
      gone = true;
    };
  }, [key, of?.revision]);
  return asked.key === key && key !== "" ? asked : WAITING;
}
