/** Says that no trial holds, with the way to why; or, where that is not so, what is said otherwise. */
import type { ComponentChildren } from "preact";
import { type Counts, lostWords } from "../lib/lost";
import { show } from "../state/state";

export function Lost({
  counts,
  of,
  otherwise = null,
  onEvidence = () => show("evidence"),
}: {
  counts: Counts;
  /** Whose trials: "this run". */
  of: string;
  otherwise?: ComponentChildren;
  onEvidence?: () => void;
}) {
  const words = lostWords(counts);
  if (words === null) return typeof otherwise === "string" ? <p class="empty">{otherwise}</p> : otherwise;
  return (
    <p class="empty">
      Nothing of {of} can be shown: {words}.{" "}
      <button type="button" class="link" onClick={onEvidence}>
        Evidence
      </button>{" "}
      says why.
    </p>
  );
}
