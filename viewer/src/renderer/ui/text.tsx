/** A text of a database on the page: never markup, its direction its own, and long ones cut until asked for. */
import { useState } from "preact/hooks";
import { plainLines } from "../../contract/text";

/** most: characters shown at first. */
export function Text({ value, most = 240 }: { value: string | null; most?: number }) {
  const [whole, setWhole] = useState(false);
  if (value === null || value === "") return <>–</>;
  if (value.length <= most) return <bdi>{plainLines(value)}</bdi>;
  return (
    <>
      <bdi>{plainLines(whole ? value.slice(0, WHOLE) : `${value.slice(0, most)}…`)}</bdi>{" "}
      <button type="button" class="link" aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? "less" : `all ${value.length} characters`}
      </button>
      {whole && value.length > WHOLE ? <span class="quiet"> (the first {WHOLE})</span> : null}
    </>
  );
}

/** No layout of a cell gets longer than this: more is not read there. */
const WHOLE = 20_000;
