/** A figure as a picture of its own: as on the page, with its title above all else, on room of its own. */
import type { Layout } from "plotly.js";
import { clean } from "../lib/text";
import { plain } from "./figure";

/** px. */
export const WIDTH = 1200;
const SIZE = 15;
const LINE = 20;
const AROUND = 30;
/** Letters that fit into the width. */
const LETTERS = 145;

/** Words as lines of no more letters than these; a longer word has a line of its own. */
export function wrapped(text: string, letters: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= letters) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/**
 * top: px above the plot when it is drawn without a title, with all that Plotly moves there: rows of a legend, an axis.
 * The plot itself stays as high as it is, so that they stay where they are.
 */
export function titled(title: string, layout: Partial<Layout>, height: number, top: number): Partial<Layout> {
  const lines = wrapped(clean(title, 300), LETTERS).map((line) => plain(line, 300));
  const room = AROUND + LINE * lines.length;
  const legend = layout.legend as { yref?: string; y?: number } | undefined;
  return {
    ...layout,
    width: WIDTH,
    height: height + room,
    margin: { ...layout.margin, t: top + room },
    title: {
      text: lines.join("<br>"),
      font: { size: SIZE },
      yref: "container",
      y: 1,
      yanchor: "top",
      pad: { t: 14 },
    },
    // What is placed by the picture's height has to leave the title its room too.
    ...(legend?.yref === "container"
      ? { legend: { ...legend, y: ((legend.y ?? 1) * height) / (height + room) } as object }
      : {}),
  };
}
