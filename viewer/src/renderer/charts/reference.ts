import type { Shape } from "plotly.js";

/** Where a ratio says "alike": a dotted line from top to bottom at 1. */
export const AT_ONE: Partial<Shape> = {
  type: "line",
  x0: 1,
  x1: 1,
  y0: 0,
  y1: 1,
  yref: "paper",
  line: { width: 1, color: "rgba(128,128,128,0.8)", dash: "dot" },
};
