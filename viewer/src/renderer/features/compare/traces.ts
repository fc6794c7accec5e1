/** The marks of a strip chart as Plotly's traces: each told apart by shape as well as by colour. */
import type { Data } from "plotly.js";
import { COLOURS } from "../../charts/figure";

export interface Mark {
  x: number;
  y: number;
  text: string;
  /** What a click gives. */
  trial: number | null;
}

export interface Segment {
  from: number;
  to: number;
  y: number;
  text: string;
}

export type Trace = Partial<Data> & { x: (number | null)[] };

interface Look {
  colour: string;
  /** Seen on a light ground, while the colour within is seen on a dark one. */
  rim?: string;
  symbol?: string;
  size?: number;
  width?: number;
  opacity?: number;
}

export const LOOK = {
  dot: { colour: COLOURS[4], rim: COLOURS[0], symbol: "circle", size: 8, width: 1.5 },
  median: { colour: COLOURS[5], symbol: "line-ns", size: 30, width: 3 },
  interval: { colour: COLOURS[1], width: 13, opacity: 0.5 },
  range: { colour: COLOURS[7], width: 2, symbol: "line-ns" },
  theory: { colour: COLOURS[2], symbol: "diamond-open", size: 10, width: 2 },
  published: { colour: COLOURS[3], symbol: "triangle-up", size: 11 },
  publishedElse: { colour: COLOURS[3], symbol: "triangle-up-open", size: 11, width: 2 },
} as const satisfies Record<string, Look>;

export const marks = (name: string, look: Look, found: Mark[]): Trace => ({
  type: "scatter",
  mode: "markers",
  name,
  x: found.map(({ x }) => x),
  y: found.map(({ y }) => y),
  text: found.map(({ text }) => text),
  customdata: found.map(({ trial }) => trial),
  hovertemplate: "%{text}<extra></extra>",
  marker: {
    color: look.colour,
    symbol: look.symbol ?? "circle",
    size: look.size ?? 8,
    opacity: look.opacity ?? 1,
    line: { color: look.rim ?? look.colour, width: look.width ?? 0 },
  },
});

/** Bars from here to there; one trace, its pieces parted by gaps. */
export const segments = (name: string, look: Look, found: Segment[]): Trace => ({
  type: "scatter",
  mode: look.symbol ? "lines+markers" : "lines",
  name,
  x: found.flatMap(({ from, to }) => [from, to, null]),
  y: found.flatMap(({ y }) => [y, y, null]),
  text: found.flatMap(({ text }) => [text, text, ""]),
  hovertemplate: "%{text}<extra></extra>",
  opacity: look.opacity ?? 1,
  line: { color: look.colour, width: look.width ?? 2 },
  ...(look.symbol
    ? { marker: { symbol: look.symbol, size: 12, color: look.colour, line: { color: look.colour, width: 2 } } }
    : {}),
});
