/** To the trial before and after of the same cell: same benchmark, overlay, mode and place. */
import { useEffect } from "preact/hooks";
import { useQuery } from "../../state/query";
import { currentTrial } from "../../state/state";

export function Cell({ trial }: { trial: number }) {
  const rows = useQuery("trial_cell", { trial }).rows ?? [];
  const at = rows.findIndex(({ trial_id }) => trial_id === trial);
  const before = rows[at - 1]?.trial_id;
  const after = at < 0 ? undefined : rows[at + 1]?.trial_id;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const next =
        event.altKey && !event.ctrlKey && !event.metaKey
          ? { ArrowLeft: before, ArrowRight: after }[event.key]
          : undefined;
      if (next === undefined) return;
      event.preventDefault();
      currentTrial.value = next;
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [before, after]);
  if (rows.length < 2) return null;
  return (
    <section class="tools" aria-label="Trials of the same benchmark, overlay and place">
      <button
        type="button"
        disabled={before === undefined}
        title="Alt+←"
        aria-label="Previous of the same kind"
        onClick={() => (currentTrial.value = before ?? null)}
      >
        ←
      </button>
      <span class="quiet">
        {at + 1} of {rows.length} alike
      </span>
      <button
        type="button"
        disabled={after === undefined}
        title="Alt+→"
        aria-label="Next of the same kind"
        onClick={() => (currentTrial.value = after ?? null)}
      >
        →
      </button>
    </section>
  );
}
