/** All finished runs of the file: the newest of each tier, side by side, never pooled. */
import { useMemo } from "preact/hooks";
import type { GridCellRow, GridTableRow } from "../../../contract/compare";
import { clean, metricWords } from "../../lib/text";
import { useQuery } from "../../state/query";
import { chooseRun, settings } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choice, distinct } from "../../ui/choice";
import { Encrypted, Overlays, ScaleSwitch } from "./choices";
import { bothKinds, isShown, keep, kept } from "./kept";
import { choiceOf, keyOf, parametersOf } from "./keys";
import { isHost } from "./ratios";
import { tiersOf } from "./tiers";
import { tiersAbsoluteFigure } from "./tiers-absolute";
import { tiersFigure } from "./tiers-ratio";

export function TiersGrid() {
  const tables = useQuery("grid_tables", {});
  return (
    <Rows asked={tables} empty="No finished run of this file has a ratio to the host.">
      {(rows) => <Chosen tables={rows} />}
    </Rows>
  );
}

function Chosen({ tables }: { tables: GridTableRow[] }) {
  const choice = kept();
  const table = tables.find((each) => keyOf(each) === choice.tiersTable) ?? (tables[0] as GridTableRow);
  const cells = useQuery("grid_cells", parametersOf(table));
  const title = (each: GridTableRow): string =>
    clean(
      `${each.benchmark} (${each.placement}): ${metricWords(each.metric)}, ${each.runs} ${each.runs === 1 ? "run" : "runs"}`,
      120,
    );
  return (
    <>
      <div class="filters">
        <Choice
          label="Metric and benchmark"
          value={keyOf(table)}
          options={tables.map((each) => ({ value: keyOf(each), text: title(each) }))}
          onChoose={(tiersTable) => tiersTable !== null && keep({ tiersTable })}
        />
      </div>
      <Rows asked={cells} empty="No finished run has a value of this.">
        {(rows) => <Drawn table={table} rows={rows} />}
      </Rows>
    </>
  );
}

function Drawn({ table, rows }: { table: GridTableRow; rows: GridCellRow[] }) {
  const choice = kept();
  const { rateUnit, timeUnit } = settings.value;
  const others = rows.filter((row) => !isHost(row));
  const both = bothKinds(others);
  const names = distinct(others, ({ overlay }) => overlay);
  const shown = others.filter((row) => isShown(row, choice, both));
  const absolute = choice.scale === "absolute";
  const tiers = useMemo(
    () => tiersOf([...rows.filter(isHost), ...shown], choice.scale),
    [rows, choice.hidden.join("\n"), choice.encrypted, choice.scale],
  );
  const figure = useMemo(
    () =>
      absolute ? tiersAbsoluteFigure(tiers, table, { rateUnit, timeUnit }) : tiersFigure(tiers, table, table.better),
    [tiers, table, absolute, rateUnit, timeUnit],
  );
  return (
    <>
      <div class="filters">
        <ScaleSwitch value={choice.scale} />
        <Encrypted value={choice.encrypted} both={both} />
        <Overlays names={names} hidden={choice.hidden} onChange={(value) => keep({ hidden: value })} />
      </div>
      {tiers.warnings.length ? (
        <p class="note" role="note">
          These columns are not to be compared with each other as they are: {tiers.warnings.join("; ")}.
        </p>
      ) : null}
      {shown.length ? (
        <Chart
          figure={figure}
          height={figure.layout.height ?? 420}
          behind="Compare"
          onPoint={(run) => {
            chooseRun(String(run));
            keep({ part: "run", ...choiceOf(table) });
          }}
        />
      ) : (
        <p class="empty">Every overlay is hidden by a filter.</p>
      )}
      <p class="quiet">
        Each cell is the newest finished run of its tier that has the overlay:{" "}
        {absolute
          ? "the median over blocks. The darker, the more. –: not measured."
          : "the median over blocks of its ratio to the host, and what may be claimed of it. =: within the tool's step, which says nothing. –: not measured."}
      </p>
    </>
  );
}
