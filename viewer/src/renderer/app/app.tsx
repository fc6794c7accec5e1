/** The frame: side bar, the open file's heading, one view. */
import { VIEWS } from "../../contract/views";
import { bridge } from "../state/bridge";
import {
  busy,
  closeFile,
  currentFile,
  file,
  files,
  helpShown,
  look,
  opened,
  openFile,
  show,
  view,
} from "../state/state";
import { Boundary } from "../ui/boundary";
import { Banners } from "./banners";
import { exportAll } from "./export-page";
import { Failures } from "./failures";
import { Help } from "./help";
import { PAGES } from "./pages";
import { Preferences } from "./preferences";
import { Start } from "./start";

function SideBar() {
  return (
    <nav aria-label="Views">
      <h1>overlaylab</h1>
      {VIEWS.map(({ id, title }) => (
        <button type="button" aria-current={view.value === id ? "page" : undefined} onClick={() => show(id)}>
          {title}
        </button>
      ))}
    </nav>
  );
}

function Heading() {
  const open = file.value;
  return (
    <header>
      {files.value.length > 1 ? (
        <select aria-label="File" value={currentFile.value ?? ""} onChange={(event) => look(event.currentTarget.value)}>
          {files.value.map(({ id, name, path }) => (
            <option value={id} title={path}>
              {name}
            </option>
          ))}
        </select>
      ) : (
        <span class="file" title={file.value?.path}>
          {file.value?.name}
        </span>
      )}
      <button type="button" onClick={() => void openFile()}>
        Open…
      </button>
      {open ? (
        <>
          <button type="button" onClick={() => void closeFile(open.id)}>
            Close
          </button>
          <button type="button" disabled={busy.value !== null} onClick={() => void exportAll()}>
            Export all…
          </button>
        </>
      ) : null}
      <Preferences />
      <button type="button" aria-label="Keys and how to read the plots" onClick={() => (helpShown.value = true)}>
        ?
      </button>
    </header>
  );
}

export function App() {
  const Page = PAGES[view.value];
  const title = VIEWS.find(({ id }) => id === view.value)?.title ?? "This view";
  return (
    <div class="app" onDragOver={(event) => event.preventDefault()} onDrop={(event) => void dropped(event)}>
      <SideBar />
      <div class="content">
        <Heading />
        <Failures />
        {file.value ? <Banners file={file.value} /> : null}
        {busy.value ? (
          <p class="waiting" role="status">
            {busy.value}
          </p>
        ) : null}
        <main aria-label={title}>
          <Boundary key={`${view.value} ${file.value?.id}`} what={title}>
            {file.value ? <Page /> : <Start />}
          </Boundary>
        </main>
      </div>
      <Help />
    </div>
  );
}

async function dropped(event: DragEvent): Promise<void> {
  event.preventDefault();
  // The browser empties its list while the first file is being opened.
  for (const found of [...(event.dataTransfer?.files ?? [])]) {
    const { path, answer } = await bridge.openDropped(found);
    opened(answer, path);
  }
}
