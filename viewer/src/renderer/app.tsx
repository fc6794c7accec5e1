/** The page: side bar, the open file's heading, one view. */
import { effect } from "@preact/signals";
import { render } from "preact";
import { VIEWS, type ViewId } from "../contract/views";
import { bridge } from "./bridge";
import { exportAll } from "./export-page";
import { plotly } from "./plotly";
import {
  begin,
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
} from "./state";
import { Banners } from "./ui/banners";
import { Boundary } from "./ui/boundary";
import { Failures } from "./ui/failures";
import { Help } from "./ui/help";
import { Preferences } from "./ui/preferences";
import { Start } from "./ui/start";
import { sayUncaught } from "./uncaught";
import { PAGES } from "./views";
import "./theme";
import "./title";

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

function App() {
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

/** The views that are lists and tables. */
const PLOTLESS: readonly ViewId[] = ["overview", "evidence"];

// Plotly is read while the first rows are asked for. Should it fail, the plot says so.
effect(() => {
  if (!PLOTLESS.includes(view.value)) plotly().catch(() => undefined);
});

const place = document.getElementById("app");
bridge.on("command", (told) => {
  if (told.name === "export-all") void exportAll();
});
sayUncaught();
if (place) {
  // A page without its settings is better than none: what kept them from being read is said on it.
  const draw = () => render(<App />, place);
  begin().then(draw, (error: unknown) => {
    draw();
    throw error;
  });
}
