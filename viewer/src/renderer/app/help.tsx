/** Keys, units and how to read the plots, in one place. */
import { useEffect, useRef } from "preact/hooks";
import { helpShown } from "../state/state";
import { About } from "./about";

const KEYS: [string, string][] = [
  ["Ctrl+O", "open a file; or drop one on the window"],
  ["Ctrl+1 … Ctrl+9", "the first nine views, in the order of the side bar"],
  ["Ctrl+E", "export all views as one HTML file"],
  ["Tab, Shift+Tab, Enter, Space", "every control; “Table” at a plot gives its points as rows with a button each"],
  ["Ctrl++, Ctrl+-, Ctrl+0", "larger, smaller, as it was"],
  ["Alt+←, Alt+→", "Evidence: the previous and the next trial of the same kind"],
  ["Escape", "puts the newest message away"],
  ["F1", "this page"],
];

export function Help() {
  const place = useRef<HTMLDialogElement>(null);
  const shown = helpShown.value;
  useEffect(() => {
    if (shown) place.current?.showModal();
    else place.current?.close();
  }, [shown]);
  return (
    <dialog ref={place} aria-label="Keys and how to read the plots" onClose={() => (helpShown.value = false)}>
      <h2>Keys</h2>
      <table>
        <tbody>
          {KEYS.map(([key, does]) => (
            <tr>
              <th scope="row">{key}</th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h2>How to read the plots</h2>
      <ul>
        <li>
          The unit of repetition is the block: the host and every overlay once, close together in time. A dot is a
          block.
        </li>
        <li>The ratio to the host is taken within each block; the line is the median over blocks.</li>
        <li>
          A bar is the interval that holds that median with 95 % or more. From fewer than six blocks nothing is claimed:
          then only the range is drawn.
        </li>
        <li>“Cannot tell” is not “no difference”: more blocks may tell.</li>
        <li>– is a value that was not measured. It is never zero.</li>
        <li>Mbit/s are 10⁶ bit/s of application bytes received; MiB/s are 2²⁰ bytes.</li>
      </ul>
      {shown ? <About /> : null}
      <p>
        <button type="button" class="primary" onClick={() => (helpShown.value = false)}>
          Close
        </button>
      </p>
    </dialog>
  );
}
