/** A text of a database on the page: never markup, its direction its own, and long ones cut until asked for. */
import { useState } from "preact/hooks";
import { plainLines } from "../../contract/text";

const whole = new WeakMap<Element, string>();

/** The text of an element of <Text>, of which the page may show but the beginning; at most so much as can be unfolded. */
export const wholeText = (element: Element): string | undefined => {
  const found = whole.get(element);
  return found === undefined ? undefined : plainLines(found.slice(0, WHOLE));
};

/** most: characters shown at first. */
export function Text({ value, most = 240 }: { value: string | null; most?: number }) {
  const [unfolded, setUnfolded] = useState(false);
  const keep = (element: HTMLElement | null): void => {
    if (element && value) whole.set(element, value);
  };
  if (value === null || value === "") return <>–</>;
  if (value.length <= most) return <bdi>{plainLines(value)}</bdi>;
  return (
    <>
      <bdi ref={keep}>{plainLines(unfolded ? value.slice(0, WHOLE) : `${value.slice(0, most)}…`)}</bdi>{" "}
      <button type="button" class="link" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>
        {unfolded ? "less" : `all ${value.length} characters`}
      </button>
      {unfolded && value.length > WHOLE ? <span class="quiet"> (the first {WHOLE})</span> : null}
    </>
  );
}

/** No layout of a cell gets longer than this: more is not read there. */
const WHOLE = 20_000;
