/** The little Markdown that debriefs use: paragraphs, headings, lists, code, emphasis; links are their words. */
import { plainLines } from "../../../contract/text";

export interface Part {
  as: "text" | "code" | "strong" | "em";
  text: string;
}

export interface Block {
  kind: "paragraph" | "heading" | "list" | "code";
  /** One for each item of a list; else one. */
  lines: Part[][];
}

const PARTS = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\([^)]*\)/g;

function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let from = 0;
  const say = (as: Part["as"], words: string) => {
    if (words) parts.push({ as, text: words });
  };
  for (const found of text.matchAll(PARTS)) {
    const [whole, code, strong, em, link] = found;
    say("text", text.slice(from, found.index));
    if (code !== undefined) say("code", code);
    else if (strong !== undefined) say("strong", strong);
    else if (em !== undefined) say("em", em);
    else say("text", link ?? "");
    from = found.index + whole.length;
  }
  say("text", text.slice(from));
  return parts;
}

/** Fenced code is a block whatever is in it; all else is parted by empty lines. */
export function blocksOf(text: string): Block[] {
  return plainLines(text)
    .split(/^(```[^\n]*\n[\s\S]*?\n```)\s*$/m)
    .flatMap((part): Block[] => {
      const fenced = /^```[^\n]*\n([\s\S]*)\n```$/.exec(part);
      if (fenced) return [{ kind: "code", lines: [[{ as: "text", text: fenced[1] ?? "" }]] }];
      return part
        .split(/\n\s*\n/)
        .map((block) => block.trim())
        .filter(Boolean)
        .flatMap(blocks);
    });
}

const ITEM = /^\s*(?:[-*]|\d+\.)\s+/;

/** A list may follow its paragraph without an empty line; lines of an item that are folded belong to it. */
function blocks(text: string): Block[] {
  const found: { item: boolean; lines: string[] }[] = [];
  for (const line of text.split("\n")) {
    const last = found.at(-1);
    if (ITEM.test(line)) {
      if (last?.item) last.lines.push(line.replace(ITEM, ""));
      else found.push({ item: true, lines: [line.replace(ITEM, "")] });
    } else if (last) last.lines.push(`${last.lines.pop() ?? ""} ${line.trim()}`);
    else found.push({ item: false, lines: [line.trim()] });
  }
  return found.map(({ item, lines }): Block => {
    if (item) return { kind: "list", lines: lines.map(partsOf) };
    const heading = /^#+\s+(.*)$/.exec(lines[0] ?? "");
    return heading
      ? { kind: "heading", lines: [partsOf(heading[1] ?? "")] }
      : { kind: "paragraph", lines: [partsOf(lines[0] ?? "")] };
  });
}
