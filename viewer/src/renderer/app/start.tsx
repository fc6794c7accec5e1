/** Nothing is open: what to do. */
import { useEffect, useState } from "preact/hooks";
import type { RecentFile } from "../../contract/files";
import { time } from "../lib/units";
import { bridge } from "../state/bridge";
import { opened, openFile } from "../state/state";

export function Start() {
  const [recent, setRecent] = useState<RecentFile[]>([]);
  useEffect(() => {
    void bridge.recentFiles().then((found) => found.ok && setRecent(found.value));
  }, []);
  return (
    <section class="start">
      <h2>Nothing is open</h2>
      <p>
        Measure something first: <code>./task lab:weave</code> writes <code>results/lab.sqlite</code>. Or open a file,
        drop one on this window, or look at real results that come with the viewer.
      </p>
      <p>
        <button type="button" class="primary" onClick={() => void openFile()}>
          Open a file…
        </button>{" "}
        <button type="button" onClick={() => void bridge.openDemo().then((found) => opened(found, "demo"))}>
          Show the demo
        </button>
      </p>
      {recent.length ? (
        <>
          <h3>Recent files</h3>
          <ul class="recent">
            {recent.map(({ path, name, openedAt }) => (
              <li>
                <button type="button" class="link" title={path} onClick={() => void openFile(path)}>
                  {name}
                </button>{" "}
                <small>
                  {path} · {time(openedAt)}
                </small>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </section>
  );
}
