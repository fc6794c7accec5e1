/** What a chart is: pure data for Plotly, made from rows, and the same values as a table for CSV, copying and screen readers. */
import type { Data, Layout } from "plotly.js";
import type { Grid } from "../lib/grid";
import { clean } from "../lib/text";

export interface Figure {
  /** What is plotted, in which unit, with how many repetitions: text of the page, to be escaped where Plotly gets it. */
  title: string;
  data: Partial<Data>[];
  layout: Partial<Layout>;
  grid: Grid;
  /** What the eye cannot see: spoken instead of the picture. */
  summary: string;
}

/** `clean` for Plotly, which reads a little markup in its texts. */
export const plain = (text: string, most = 80): string =>
  clean(text, most).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/**
 * Okabe and Ito's colours, told apart by people with any colour vision; by position, never by name. In place of their
 * yellow, whose contrast on white is 1.3, stands the olive of Paul Tol's muted scheme (3.0), in place of black a grey.
 */
export const COLOURS = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#999933",
  "#888888",
] as const;
/** With a symbol each, as a plot may be printed in grey. */
export const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "cross", "star", "hexagon"] as const;

export const colour = (at: number): string => COLOURS[at % COLOURS.length] as string;
export const symbol = (at: number): string => SYMBOLS[at % SYMBOLS.length] as string;
