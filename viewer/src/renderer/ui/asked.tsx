import type { ComponentChildren } from "preact";
import type { Asked } from "../state/query";
import { ProblemBox } from "./problem";

/** What a question gave: the rows, or why there are none (yet). */
export function Rows<Row>({
  asked,
  empty,
  children,
}: {
  asked: Asked<Row>;
  /** A text, or a whole element. */
  empty: ComponentChildren;
  children: (rows: Row[]) => ComponentChildren;
}) {
  if (asked.state === "waiting")
    return (
      <p class="waiting" role="status">
        Reading …
      </p>
    );
  if (asked.state === "failed") return <ProblemBox problem={asked.problem} />;
  if (asked.rows.length > 0) return children(asked.rows);
  return typeof empty === "string" ? <p class="empty">{empty}</p> : empty;
}
