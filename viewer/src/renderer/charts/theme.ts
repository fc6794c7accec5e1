/** Light or dark: laid over a figure when it is drawn, so that charts need not know. */
import type { Layout } from "plotly.js";

export interface Theme {
  dark: boolean;
  text: string;
  grid: string;
  ground: string;
}

const SIZE = 13;

/** 1,000,000 and 0.0008, not 1M and 800µ: an axis says its unit. A tickformat of its own goes before. */
const NUMBERS = { exponentformat: "none", separatethousands: true };

export const theme = (dark: boolean): Theme =>
  dark
    ? { dark, text: "#e6e8eb", grid: "#39414b", ground: "#16191d" }
    : { dark, text: "#1b1f24", grid: "#d8dde3", ground: "#ffffff" };

export function themed(layout: Partial<Layout>, { text, grid, ground }: Theme): Partial<Layout> {
  const given = layout as Record<string, unknown>;
  const axes = Object.fromEntries(
    Object.keys(given)
      .filter((name) => /^[xy]axis\d*$/.test(name))
      .map((name) => {
        const axis = given[name] as { title?: { text?: string; font?: object } };
        // Plotly sets titles larger than all other text otherwise.
        const title = axis.title ? { title: { ...axis.title, font: { size: SIZE, ...axis.title.font } } } : {};
        return [
          name,
          { ...NUMBERS, gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true, ...axis, ...title },
        ];
      }),
  );
  return {
    ...layout,
    ...axes,
    paper_bgcolor: ground,
    plot_bgcolor: ground,
    font: { family: "system-ui, sans-serif", size: SIZE, color: text, ...layout.font },
    hoverlabel: { bgcolor: ground, bordercolor: grid, font: { color: text }, ...layout.hoverlabel },
  };
}
