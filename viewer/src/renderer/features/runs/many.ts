/** One question put to several open files at once. */
import { useEffect, useState } from "preact/hooks";
import type { OpenFile } from "../../../contract/files";
import type { Parameters, QueryName, Row } from "../../../contract/queries";
import { bridge } from "../../state/bridge";
import type { Asked } from "../../state/query";

export interface Put<Name extends QueryName> {
  of: OpenFile;
  parameters: Parameters<Name>;
}

const WAITING = { state: "waiting", rows: null, problem: null } as const;

/** Rows of each, in the order asked. While a file is written to, the old rows stay until the new ones are there. */
export function useMany<Name extends QueryName>(name: Name, put: readonly Put<Name>[]): Asked<Row<Name>[]> {
  const [asked, set] = useState<Asked<Row<Name>[]> & { key?: string }>(WAITING);
  const key = JSON.stringify([name, put.map(({ of, parameters }) => [of.id, parameters])]);
  const revisions = put.map(({ of }) => of.revision).join();
  useEffect(() => {
    let gone = false;
    void Promise.all(put.map(({ of, parameters }) => bridge.query(of.id, name, parameters))).then((answers) => {
      if (gone) return;
      const failed = answers.find((answer) => !answer.ok);
      if (failed && !failed.ok) set({ state: "failed", rows: null, problem: failed.problem, key });
      else set({ state: "ready", rows: answers.map((answer) => (answer.ok ? answer.value : [])), problem: null, key });
    });
    return () => {
      gone = true;
    };
  }, [key, revisions]);
  return asked.key === key ? asked : WAITING;
}
