/** One run: which table of it, which variants, drawn and as a table. */
import { useMemo } from "preact/hooks";
import type { ComparisonRow, DotRow, TableRow } from "../../../contract/compare";
import type { RunRow } from "../../../contract/run";
import { ended } from "../../../contract/text";
import { list, parsed, text } from "../../lib/json";
import { countsOf } from "../../lib/lost";
import { tierWords } from "../../lib/runs";
import { clean, metricWords } from "../../lib/text";
import { type Asked, useQuery } from "../../state/query";
import { settings, showTrial } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choice, still } from "../../ui/choice";
import { GridTable } from "../../ui/grid-table";
import { Lost } from "../../ui/lost";
import { Encrypted, Overlays, ScaleSwitch } from "./choices";
import { copiedTable } from "./copied";
import { compareFigure } from "./figure";
import { AXES, bothKinds, isShown, type Kept, keep, kept } from "./kept";
import { chosenTable, distinct, keyOf, parametersOf } from "./keys";
import { percent } from "./percent";
import { isHost } from "./ratios";
import { summaryTable } from "./table";

export function OneRun({ run }: { run: RunRow }) {
  const tables = useQuery("compare_tables", { run: run.run_id });
  const empty = run.trials_planned
    ? "Nothing of this run can be compared yet: no block of it has ended, or the file is of before comparisons were kept (./task results:refresh makes them)."
    : "This run checked a profile and compared no overlays. Its checks are under Tiers.";
  return (
    <Rows asked={tables} empty={<Lost counts={countsOf(run)} of="this run" otherwise={empty} />}>
      {(rows) => <Chosen run={run} tables={rows} />}
    </Rows>
  );
}

function Chosen({ run, tables }: { run: RunRow; tables: TableRow[] }) {
  const choice = kept();
  const { placements, metrics, metric, tables: ofMetric, table } = chosenTable(tables, choice);
  return (
    <>
      <div class="filters">
        <Choice
          label="Placement"
          value={still(choice.placement, placements)}
          all="all"
          options={placements}
          onChoose={(placement) => keep({ placement })}
        />
        <Choice
          label="Metric"
          value={metric}
          options={metrics.map((value) => ({ value, text: metricWords(value) }))}
          onChoose={(value) => value !== null && keep({ metric: value })}
        />
        <Choice
          label="Benchmark"
          value={table ? keyOf(table) : null}
          options={ofMetric.map((each) => ({ value: keyOf(each), text: titleOf(each, ofMetric) }))}
          onChoose={(value) => value !== null && keep({ table: value, metric })}
        />
      </div>
      {table ? <Table key={keyOf(table)} run={run} table={table} /> : null}
    </>
  );
}

/** A benchmark's name, with where it ran if that is not clear from it alone. */
function titleOf(table: TableRow, all: TableRow[]): string {
  const alike = all.filter(({ benchmark }) => benchmark === table.benchmark);
  const place = alike.length > 1 ? ` (${table.place ?? `${table.client_node} to ${table.server_node}`})` : "";
  return `${table.benchmark}${place}${table.is_primary ? " – primary" : ""}`;
}

function Table({ run, table }: { run: RunRow; table: TableRow }) {
  const parameters = { run: run.run_id, ...parametersOf(table) };
  const rows = useQuery("compare_rows", parameters);
  const dots = useQuery("compare_dots", parameters);
  const both: Asked<ComparisonRow> =
    dots.state === "ready" ? rows : dots.state === "failed" ? dots : { state: "waiting", rows: null, problem: null };
  return (
    <Rows asked={both} empty="No trial of this table has given a value yet.">
      {(found) => <Drawn run={run} table={table} rows={found} dots={dots.rows ?? []} />}
    </Rows>
  );
}

function Drawn({ run, table, rows, dots }: { run: RunRow; table: TableRow; rows: ComparisonRow[]; dots: DotRow[] }) {
  const choice = kept();
  const units = settings.value;
  const others = rows.filter((row) => !isHost(row));
  const both = bothKinds(others);
  const asRatio = table.compared === 1 && choice.scale === "ratio";
  const shown = rows.filter((row) => isHost(row) || isShown(row, choice, both));
  const figure = useMemo(
    () =>
      compareFigure({
        table,
        rows: shown,
        dots: dots.filter((dot) =>
          shown.some((row) => row.overlay === dot.overlay && row.mode === dot.mode && row.encrypted === dot.encrypted),
        ),
        asRatio,
        axis: choice.axis,
        tier: tierWords(run) ?? `profile ${run.profile}`,
        units,
      }),
    [
      table,
      rows,
      dots,
      asRatio,
      choice.axis,
      choice.encrypted,
      choice.hidden.join("\n"),
      units.rateUnit,
      units.timeUnit,
    ],
  );
  return (
    <>
      <div class="filters">
        {table.compared ? <ScaleSwitch value={choice.scale} /> : null}
        <Choice
          label="Axis"
          value={choice.axis}
          options={AXES}
          onChoose={(axis) => keep({ axis: axis as Kept["axis"] })}
        />
        <Encrypted value={choice.encrypted} both={both} />
        <Overlays
          names={distinct(others.map(({ overlay }) => overlay))}
          hidden={choice.hidden}
          onChange={(hidden) => keep({ hidden })}
        />
      </div>
      <Chart figure={figure} height={figure.layout.height ?? 420} onPoint={(trial) => showTrial(Number(trial))} />
      <GridTable
        grid={summaryTable(table, shown, units)}
        copied={copiedTable(table, shown, units)}
        label={`${table.benchmark}: ${table.metric}, as a table`}
      />
      <Notes table={table} rows={shown} hidden={rows.length - shown.length} />
    </>
  );
}

/** What qualifies the numbers, in sentences. */
function Notes({ table, rows, hidden }: { table: TableRow; rows: ComparisonRow[]; hidden: number }) {
  const others = rows.filter((row) => !isHost(row));
  const margin = others[0]?.margin ?? null;
  const claims = others.some(({ verdict }) => verdict !== null);
  const tools = parsed(table.tools, list(text)) ?? [];
  const alone = others.filter(
    (row) =>
      row.verdict === "cannot tell" &&
      row.verdict_alone_words !== null &&
      row.verdict_alone_words !== row.verdict_words,
  );
  const sentences = [
    hidden ? `${hidden} ${hidden === 1 ? "variant is" : "variants are"} hidden by a filter.` : "",
    tools.length ? ended(`Measured with ${tools.map((tool) => clean(tool)).join(", ")}`) : "",
    claims && margin !== null
      ? `Verdict: same where all of the interval lies within ${percent(margin)} of the host, by the margin given before the run; faster, slower, better or worse where all of it lies on one side of 1; else cannot tell.`
      : "",
    claims
      ? table.is_primary
        ? "The verdicts of this table hold together."
        : "Each verdict of this table holds for itself alone: of 20 such, one may be wrong."
      : "",
    ...alone.map(
      (row) =>
        `${clean([row.overlay, row.mode].filter(Boolean).join(" "))}: ${row.verdict_alone_words}, had it been the only comparison.`,
    ),
    others.some(({ theory }) => theory !== null)
      ? "Headers: the ratio to the host if encapsulation cost nothing but its bytes."
      : "",
  ].filter(Boolean);
  return (
    <div class="quiet compare-notes">
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </div>
  );
}
