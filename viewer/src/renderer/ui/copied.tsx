/** A table, and the button that takes it to a spreadsheet. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { copy } from "../state/clipboard";
import { Scroll } from "./scroll";
import { tableText } from "./table-text";

export function Copied({ children }: { children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  const taken = (): void => {
    const table = place.current?.querySelector("table");
    if (table) void copy(tableText(table));
  };
  return (
    <div class="copied" ref={place}>
      {children}
      <CopyTable onCopy={taken} />
    </div>
  );
}

export const CopyTable = ({ onCopy }: { onCopy: () => void }) => (
  <button type="button" class="copy" onClick={onCopy}>
    Copy table
  </button>
);

/** One that may be larger than its place. */
export const TableScroll = (given: { label: string; class?: string; children: ComponentChildren }) => (
  <Copied>
    <Scroll {...given} />
  </Copied>
);
