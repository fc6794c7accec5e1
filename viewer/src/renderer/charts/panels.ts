/** Places side by side in one figure: same y axis, one legend. */
import type { Data, Layout } from "plotly.js";
import { plain } from "./figure";

export interface Side {
  title: string;
  data: Partial<Data>[];
}

const GAP = 0.05;

/** More names than this do not fit above a plot: they stand beside it, and the plot needs the page's width. */
export const MANY = 6;

export const legendFor = (names: number, y = 1.02): Partial<Layout>["legend"] =>
  names > MANY
    ? { orientation: "v", x: 1.01, y: 1, tracegroupgap: 1 }
    : { orientation: "h", y, yanchor: "bottom", x: 0 };

/** px: a line for each name, of a plot with names on its axis or many in its legend. */
export const heightFor = (names: number, least: number, perName: number): number =>
  Math.max(least, 130 + perName * names);

/** An axis of names, the first on top. By position: names may be alike. */
export const namesAxis = (names: readonly string[]) => ({
  tickvals: names.map((_, at) => at),
  ticktext: names.map((name) => plain(name)),
  range: [names.length - 0.4, -0.6],
  zeroline: false,
});

/** Lines have no symbols: where a plot is printed in grey, these tell them apart. */
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"] as const;
export const dash = (at: number): string => DASHES[at % DASHES.length] as string;

/** x, y: the axes of every side. A legend's entry is shown once, with the side that has it first. */
export function sideBySide(
  sides: readonly Side[],
  x: Record<string, unknown>,
  y: Record<string, unknown>,
  rest: Partial<Layout>,
): { data: Partial<Data>[]; layout: Partial<Layout> } {
  const width = (1 - GAP * (sides.length - 1)) / sides.length;
  const layout: Record<string, unknown> = { ...rest, annotations: [] };
  const told = new Set<unknown>();
  const data = sides.flatMap(({ title, data: traces }, at) => {
    const number = at === 0 ? "" : String(at + 1);
    const from = at * (width + GAP);
    layout[`xaxis${number}`] = {
      ...x,
      domain: [from, Math.min(1, from + width)],
      anchor: `y${number}`,
      ...(at ? { matches: "x" } : {}),
    };
    layout[`yaxis${number}`] = {
      ...y,
      anchor: `x${number}`,
      ...(at ? { matches: "y", showticklabels: false, title: { text: "" } } : {}),
    };
    if (sides.length > 1) {
      (layout.annotations as unknown[]).push({
        text: plain(title, 60),
        showarrow: false,
        xref: "paper",
        yref: "paper",
        x: from + width / 2,
        y: 1,
        xanchor: "center",
        yanchor: "bottom",
      });
    }
    return traces.map((trace) => {
      const group = (trace as { legendgroup?: string }).legendgroup;
      const wanted = (trace as { showlegend?: boolean }).showlegend !== false;
      const first = wanted && !told.has(group);
      if (wanted) told.add(group);
      return { ...trace, xaxis: `x${number}`, yaxis: `y${number}`, showlegend: first } as Partial<Data>;
    });
  });
  return {
    data,
    layout: {
      margin: { t: sides.length > 1 ? 24 : 8, r: 12, b: 52, l: 64 },
      legend: legendFor(told.size, sides.length > 1 ? 1.09 : 1.02),
      showlegend: true,
      hovermode: "closest",
      ...layout,
    } as Partial<Layout>,
  };
}
