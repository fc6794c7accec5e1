import type { Problem } from "../../contract/answers";

/** Something is wrong: what, and what to do. */
export function ProblemBox({ problem, path }: { problem: Problem; path?: string }) {
  return (
    <div class="problem" role="alert">
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
