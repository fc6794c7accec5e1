import type { Problem } from "../../contract/answers";

/** Something is wrong: what, and what to do. onDismiss: for one that stays until it is put away. */
export function ProblemBox({ problem, path, onDismiss }: { problem: Problem; path?: string; onDismiss?: () => void }) {
  return (
    <div class="problem" role="alert">
      {onDismiss ? (
        <button type="button" class="dismiss" onClick={onDismiss}>
          Dismiss
        </button>
      ) : null}
      <strong>{problem.title}</strong>
      {path ? <div class="path">{path}</div> : null}
      <p>{problem.advice}</p>
      {problem.detail ? (
        <details>
          <summary>Details</summary>
          <pre>{problem.detail}</pre>
        </details>
      ) : null}
    </div>
  );
}
