/** What a view throws stays in its place: a problem that can be read, and the rest of the window works on. */
import { Component, type ComponentChildren } from "preact";
import type { Problem } from "../../contract/answers";
import { ProblemBox } from "./problem";

export const unexpected = (what: string, error: unknown): Problem => ({
  code: "unexpected",
  title: `${what} could not be shown.`,
  advice:
    "The rest of the viewer works. The file may hold something that the viewer did not expect: ./task results:show prints it too. If it is one of your own, report this with the details.",
  detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
});

/** Give it a key that changes when what is shown does: it starts anew then. */
export class Boundary extends Component<{ what: string; children: ComponentChildren }, { error: unknown }> {
  override state = { error: null as unknown };

  static override getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error: error ?? "nothing was said" };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <>
        <ProblemBox problem={unexpected(this.props.what, this.state.error)} />
        <p>
          <button type="button" onClick={() => this.setState({ error: null })}>
            Try again
          </button>
        </p>
      </>
    );
  }
}
