/** The plots of an attempt: what came through, and each measure over time. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { LevelRow, SliceRow } from "../../../contract/training";
import { settings } from "../../state/state";
import { Chart } from "../../ui/chart";
import type { Mark } from "./events";
import type { Span } from "./marks";
import { measureFigure } from "./measure-figure";
import { passesFigure, passesHeight } from "./passes-figure";

const HEIGHT = 250;

export function Graphs({
  rows,
  levels,
  marks,
  span,
  children,
}: {
  rows: readonly SliceRow[];
  levels: readonly LevelRow[];
  marks: readonly Mark[];
  span: Span;
  /** What stands beside the first plot. */
  children?: ComponentChildren;
}) {
  const { rateUnit, timeUnit } = settings.value;
  // The same objects as long as the same is shown: a figure is only drawn again when it is another one.
  const key = JSON.stringify([marks, span]);
  const figures = useMemo(() => {
    const measures = [...new Set(rows.flatMap(({ measure, unit }) => (unit === "ratio" ? [] : [measure])))];
    return [
      passesFigure(rows, marks, span),
      ...measures.map((measure) =>
        measureFigure({
          measure,
          rows: rows.filter((row) => row.measure === measure),
          levels: levels.filter((level) => level.measure === measure),
          marks,
          span,
          settings: { rateUnit, timeUnit },
        }),
      ),
    ];
  }, [rows, levels, key, rateUnit, timeUnit]);
  const [passes, ...others] = figures;
  if (!passes || rows.length === 0) return <p class="empty">Nothing was measured in it.</p>;
  return (
    <>
      <p class="quiet">
        Lines are events: H is a hint, C a check, S a step of the solution, numbered as in the list below. A dotted
        level is what the nodes had while all was well; × is a pass in which nothing could be measured.
      </p>
      <div class={children ? "beside" : ""}>
        <Chart figure={passes} height={passesHeight(rows)} />
        {children}
      </div>
      <div class="chart-pairs">
        {others.map((figure) => (
          <Chart key={figure.title} figure={figure} height={HEIGHT} />
        ))}
      </div>
    </>
  );
}
