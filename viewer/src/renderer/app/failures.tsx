/** What went wrong, above every view until the person puts it away: by its button, or the newest by Escape. */
import { useEffect } from "preact/hooks";
import { dismiss, failures } from "../state/failures";
import { ProblemBox } from "../ui/problem";

/** Escape means something else there: it closes the dialog, or empties the search. */
const hasOwnEscape = (target: EventTarget | null): boolean =>
  document.querySelector("dialog[open]") !== null ||
  (target instanceof HTMLInputElement && target.type === "search" && target.value !== "");

export function Failures() {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && !event.defaultPrevented && !hasOwnEscape(event.target)) dismiss(failures.value[0]);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return failures.value.length ? (
    <div class="failures">
      {failures.value.map((each) => (
        <ProblemBox
          key={`${each.path} ${each.problem.title}`}
          problem={each.problem}
          path={each.path}
          onDismiss={() => dismiss(each)}
        />
      ))}
    </div>
  ) : null;
}
