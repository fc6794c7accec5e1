/** Runs side by side: of one file or of several that are open, each held against the first. */

import { countsOf, lostWords } from "../../lib/lost";
import { runTitle } from "../../lib/run-words";
import { clean } from "../../lib/text";
import { files, filterOf, keepFilter, lookAt, show } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Lost } from "../../ui/lost";
import type { Chosen } from "./chosen";
import { Compared } from "./compared";
import { hindrances } from "./hindrances";
import { useMany } from "./many";

interface Kept {
  /** Path and run of each; the first is what the others are held against. */
  runs: { path: string; run: string }[];
  table: string | null;
}
const OTHERWISE: Kept = { runs: [], table: null };
/** More are not told apart. */
const MOST = 6;

const kept = (): Kept => {
  const { runs, table } = filterOf("runs", OTHERWISE);
  const known = Array.isArray(runs)
    ? runs.filter((each) => typeof each?.path === "string" && typeof each?.run === "string")
    : [];
  return { runs: known, table: typeof table === "string" ? table : null };
};
const keep = (part: Partial<Kept>): void => keepFilter("runs", { ...kept(), ...part });

export function View() {
  const open = files.value;
  const asked = useMany(
    "runs",
    open.map((of) => ({ of, parameters: {} })),
  );
  return (
    <>
      <h2>Runs side by side</h2>
      <Rows asked={asked} empty="Nothing is open.">
        {(found) => {
          const all = found.flatMap((rows, at) =>
            rows.flatMap((run): Chosen[] => (open[at] && run.trials_ok > 0 ? [{ of: open[at], run }] : [])),
          );
          const none = found.flatMap((rows, at) =>
            rows.flatMap((run): Chosen[] => (open[at] && lostWords(countsOf(run)) ? [{ of: open[at], run }] : [])),
          );
          return all.length < 2 ? (
            <>
              <p class="empty">
                {all.length ? "Only one run" : "No run"} that is open has a trial that holds. Measure another, or open
                another results database beside this one: File, Open.
              </p>
              {none.map((each) => (
                <Lost
                  key={keyOf(each)}
                  counts={countsOf(each.run)}
                  of={runTitle(each.run)}
                  onEvidence={() => {
                    lookAt(each.of.id, each.run.run_id);
                    show("evidence");
                  }}
                />
              ))}
            </>
          ) : (
            <Pick all={all} />
          );
        }}
      </Rows>
    </>
  );
}

const keyOf = ({ of, run }: Chosen): string => `${of.path} ${run.run_id}`;

/** Where nothing was chosen, or what was is not open any more: the newest, and before it the newest that it may be held against. */
function chosenOf(all: Chosen[]): Chosen[] {
  const found = kept().runs.flatMap(
    (want) => all.find(({ of, run }) => of.path === want.path && run.run_id === want.run) ?? [],
  );
  const distinct = found.filter((each, at) => found.indexOf(each) === at).slice(0, MOST);
  if (distinct.length >= 2) return distinct;
  const newest = [...all].sort((a, b) => b.run.created_at.localeCompare(a.run.created_at));
  const second = distinct[0] ?? newest[0];
  if (!second) return [];
  const others = newest.filter((each) => each !== second);
  const alike = others.filter(({ run }) => hindrances(run, second.run).length === 0);
  const first = alike.find(({ run }) => run.suite === second.run.suite) ?? alike[0] ?? others[0];
  return first ? [first, second] : [];
}

function Pick({ all }: { all: Chosen[] }) {
  const chosen = chosenOf(all);
  const set = (runs: Chosen[]): void => keep({ runs: runs.map(({ of, run }) => ({ path: of.path, run: run.run_id })) });
  const free = all.filter((each) => !chosen.includes(each));
  const next = free[0];
  const names = [...new Set(all.map(({ of }) => of.id))];
  const choice = (label: string, value: Chosen, onChoose: (each: Chosen) => void) => (
    <label>
      {label}{" "}
      <select
        value={keyOf(value)}
        onChange={(event) => {
          const found = all.find((each) => keyOf(each) === event.currentTarget.value);
          if (found) onChoose(found);
        }}
      >
        {names.map((id) => {
          const own = all.filter(({ of }) => of.id === id);
          const options = own.map((each) => (
            <option value={keyOf(each)} key={keyOf(each)} disabled={each !== value && chosen.includes(each)}>
              {names.length > 1 ? `${runTitle(each.run)} · ${clean(each.of.name, 40)}` : runTitle(each.run)}
            </option>
          ));
          return names.length > 1 ? <optgroup label={clean(own[0]?.of.name ?? "")}>{options}</optgroup> : options;
        })}
      </select>
    </label>
  );
  const [first, second] = chosen;
  return (
    <>
      <div class="run-choices">
        {chosen.map((each, at) => (
          <div class="filters" key={keyOf(each)}>
            {choice(at === 0 ? "First" : at === 1 ? "Second" : `Run ${at + 1}`, each, (found) =>
              set(chosen.map((one, place) => (place === at ? found : one))),
            )}
            {at === 0 ? <span class="quiet">what the others are held against</span> : null}
            {at === 1 && first && second ? (
              <button type="button" onClick={() => set([second, first, ...chosen.slice(2)])}>
                Swap with the first
              </button>
            ) : null}
            {at > 1 ? (
              <button type="button" onClick={() => set(chosen.filter((one) => one !== each))}>
                Remove
              </button>
            ) : null}
          </div>
        ))}
        {next && chosen.length < MOST ? (
          <button type="button" onClick={() => set([...chosen, next])}>
            Add a run
          </button>
        ) : null}
      </div>
      <Compared
        key={chosen.map(keyOf).join()}
        chosen={chosen}
        table={kept().table}
        onTable={(table) => keep({ table })}
      />
    </>
  );
}
