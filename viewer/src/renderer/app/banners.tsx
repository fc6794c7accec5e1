/** What has to be known of the open file before any of its numbers is read. */
import type { OpenFile } from "../../contract/files";
import { bridge } from "../state/bridge";
import { closeFile, opened, openFile } from "../state/state";

export function Banners({ file }: { file: OpenFile }) {
  return (
    <>
      {file.place === "there" ? null : <Displaced file={file} />}
      {file.foreign.length ? (
        <div class="banner" role="note">
          <strong>This file comes from elsewhere.</strong> {file.foreign.join(" ")}
        </div>
      ) : null}
      {file.notes.map((note) => (
        <div class="banner" role="note">
          {note}
        </div>
      ))}
    </>
  );
}

function Displaced({ file }: { file: OpenFile }) {
  const another = file.place === "taken by another";
  return (
    <div class="banner" role="alert">
      <strong>
        {another ? "Another file has taken the place of this one." : "This file was moved, renamed or deleted."}
      </strong>{" "}
      {another ? "What you see was read from the one before." : "What you see was read before that."}{" "}
      {another ? (
        <button type="button" onClick={() => void reopen(file)}>
          Open the new one
        </button>
      ) : (
        <>
          <button type="button" onClick={() => void openFile()}>
            Look for it…
          </button>{" "}
          <button type="button" onClick={() => void closeFile(file.id)}>
            Close it
          </button>
        </>
      )}
    </div>
  );
}

async function reopen(file: OpenFile): Promise<void> {
  const answer = await bridge.reopenFile(file.id);
  opened(answer, file.path);
  if (answer.ok && answer.value.id !== file.id) await closeFile(file.id);
}
