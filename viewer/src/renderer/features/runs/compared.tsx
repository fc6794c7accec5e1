/** Two or more runs held against the first: what forbids it, what differs, the plots and the table. */
import { useMemo } from "preact/hooks";
import type { RunTableRow, RunValueRow } from "../../../contract/runs";
import { ended } from "../../../contract/text";
import { clean } from "../../lib/text";
import { lookAt, settings, showTrial } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choice } from "../../ui/choice";
import type { Chosen } from "./chosen";
import { Differences, Hosts } from "./differences";
import { type Against, changesOf, differences, sideBySide, whatOf } from "./figure";
import { changedMtus, hindrances, rulesOf } from "./hindrances";
import { useMany } from "./many";
import { bothOf, overlaysOf } from "./variants";
import { Absent, between, nameOf, Warnings } from "./warnings";

const keyOf = ({ benchmark, metric, place }: RunTableRow): string => JSON.stringify([benchmark, metric, place]);

export function Compared({
  chosen,
  table,
  onTable,
}: {
  chosen: Chosen[];
  table: string | null;
  onTable: (table: string | null) => void;
}) {
  const asked = useMany(
    "run_tables",
    chosen.map(({ of, run }) => ({ of, parameters: { run: run.run_id } })),
  );
  return (
    <>
      <Warnings chosen={chosen} />
      <Rows asked={asked} empty="Nothing was chosen.">
        {([first = [], ...others]) => {
          const common = first.filter((row) => others.some((rows) => rows.some((each) => keyOf(each) === keyOf(row))));
          const shown =
            common.find((row) => keyOf(row) === table) ?? common.find(({ is_primary }) => is_primary) ?? common[0];
          if (!shown)
            return (
              <>
                <p class="empty">
                  Nothing was measured in both. Where a run has no table yet, ./task results:refresh makes it.
                </p>
                <Absent chosen={chosen} tables={[first, ...others]} />
              </>
            );
          return (
            <>
              <div class="filters">
                <Choice
                  label="What"
                  value={keyOf(shown)}
                  options={common.map((row) => ({ value: keyOf(row), text: whatOf(row) }))}
                  onChoose={onTable}
                />
              </div>
              <Values chosen={chosen} table={shown} />
              <Absent chosen={chosen} tables={[first, ...others]} />
            </>
          );
        }}
      </Rows>
    </>
  );
}

function Values({ chosen, table }: { chosen: Chosen[]; table: RunTableRow }) {
  const { benchmark, metric, place } = table;
  const asked = useMany(
    "run_values",
    chosen.map(({ of, run }) => ({ of, parameters: { run: run.run_id, benchmark, metric, place } })),
  );
  return (
    <Rows asked={asked} empty="Nothing was chosen.">
      {(values) => <Drawn chosen={chosen} table={table} values={values} />}
    </Rows>
  );
}

interface Behind {
  file: string;
  run: string;
  trial: number;
}

function Drawn({ chosen, table, values }: { chosen: Chosen[]; table: RunTableRow; values: RunValueRow[][] }) {
  const { rateUnit, timeUnit } = settings.value;
  const { against, all, moved, variants } = useMemo(() => {
    const [first] = chosen as [Chosen, ...Chosen[]];
    const found = chosen.slice(1).map((other, at): Against => {
      const rules = rulesOf(first.run, other.run);
      return {
        name: nameOf(chosen, other),
        rules,
        hindered: hindrances(first.run, other.run).length > 0,
        changes: changesOf(values[0] ?? [], values[at + 1] ?? [], bothOf([first.run, other.run]), table.unit, rules),
      };
    });
    const shown = [
      ...new Map(
        chosen
          .slice(1)
          .flatMap((other) => bothOf([first.run, other.run]))
          .map((variant) => [JSON.stringify(variant), variant]),
      ).values(),
    ];
    const sides = chosen.map((each, at) => ({
      name: nameOf(chosen, each),
      rows: values[at] ?? [],
      behind: (trial: number): Behind => ({ file: each.of.id, run: each.run.run_id, trial }),
    }));
    const unit = { rateUnit, timeUnit };
    return {
      variants: shown,
      against: found,
      all: sideBySide(sides, shown, table, unit),
      moved: differences(nameOf(chosen, first), found, table, unit),
    };
  }, [values, table, rateUnit, timeUnit]);
  const height = Math.max(220, 120 + variants.length * (18 + 16 * chosen.length));
  const open = (point: unknown): void => {
    const { file, run, trial } = point as Behind;
    lookAt(file, run);
    showTrial(trial);
  };
  const mtus = chosen.slice(1).flatMap((other, at) => {
    const found = changedMtus(values[0] ?? [], values[at + 1] ?? []);
    return found.length ? [`${between(chosen, other)}: ${ended(clean(found.join("; "), 600))}`] : [];
  });
  const overlays = overlaysOf(variants);
  return (
    <>
      {mtus.map((words) => (
        <p class="note" role="note">
          {words}
        </p>
      ))}
      {against.some(({ changes }) => changes.some(({ estimate }) => estimate !== null)) ? (
        <Chart figure={moved} height={height} />
      ) : (
        <p class="empty">
          {overlays.length ? "No overlay that these runs share has a value in both." : "These runs share no overlay."}
        </p>
      )}
      {overlays.length ? <Differences against={against} table={table} /> : null}
      <Hosts chosen={chosen} values={values} table={table} />
      {all.grid.rows.length ? <Chart figure={all} height={height} onPoint={open} /> : null}
    </>
  );
}
