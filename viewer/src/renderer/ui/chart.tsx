/** A figure on the page: drawn by Plotly, with its title, its menu of exports, and its values as a table. */

import type { PlotlyHTMLElement, PlotMouseEvent } from "plotly.js";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Figure } from "../charts/figure";
import { theme, themed } from "../charts/theme";
import { clean } from "../lib/text";
import { dark } from "../state/theme";
import { unexpected } from "./boundary";
import { ExportMenu } from "./export-menu";
import { GridTable } from "./grid-table";
import { plotly } from "./plotly";
import { ProblemBox } from "./problem";

/** onPoint: called with a point's `customdata`, on a click or with its button in the table, which names the view that it leads to. */
export function Chart({
  figure,
  onPoint,
  behind,
  height = 420,
}: {
  figure: Figure;
  onPoint?: (customdata: unknown) => void;
  behind?: string;
  height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [asTable, setAsTable] = useState(false);
  const [broken, setBroken] = useState<unknown>(null);
  const isDark = dark.value;
  const title = clean(figure.title, 300);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let gone = false;
    setBroken(null);
    void plotly()
      .then(async (Plotly) => {
        if (gone) return;
        const drawn = (await Plotly.react(
          element,
          figure.data as never,
          { height, ...themed(figure.layout, theme(isDark)) },
          {
            responsive: true,
            displaylogo: false,
            displayModeBar: false,
            scrollZoom: false,
          },
        )) as PlotlyHTMLElement;
        // Told to tests and screenshots: two animation frames later the picture is really there.
        requestAnimationFrame(() =>
          requestAnimationFrame(() => {
            if (!gone) element.setAttribute("data-drawn", "yes");
          }),
        );
        drawn.removeAllListeners?.("plotly_click");
        if (onPoint)
          drawn.on("plotly_click", (event: PlotMouseEvent) => {
            const found = event.points[0]?.customdata;
            if (found !== undefined && found !== null) onPoint(found);
          });
      })
      .catch((error: unknown) => {
        if (!gone) setBroken(error ?? "nothing was said");
      });
    return () => {
      gone = true;
      element.removeAttribute("data-drawn");
    };
  }, [figure, isDark, height, asTable]);
  useEffect(() => {
    const element = place.current;
    return () => {
      if (element) void plotly().then((Plotly) => Plotly.purge(element));
    };
  }, [asTable]);
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <span class="tools">
          <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            {asTable ? "Plot" : "Table"}
          </button>
          <ExportMenu figure={{ ...figure, layout: { height, ...figure.layout } }} />
        </span>
      </figcaption>
      {broken !== null ? <ProblemBox problem={unexpected("This plot", broken)} /> : null}
      {asTable ? (
        <GridTable grid={figure.grid} label={title} {...(onPoint ? { onPoint } : {})} {...(behind ? { behind } : {})} />
      ) : (
        <div
          ref={place}
          class="plot"
          role="img"
          aria-label={clean(`${title}. ${figure.summary}`, 4000)}
          style={{ minHeight: `${height}px` }}
        />
      )}
    </figure>
  );
}
