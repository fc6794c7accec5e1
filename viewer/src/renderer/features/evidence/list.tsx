/** The trials of a run to choose from, those that gave no result first. */
import { useEffect, useRef } from "preact/hooks";
import type { TrialRow } from "../../../contract/evidence";
import type { RunRow } from "../../../contract/run";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { useQuery } from "../../state/query";
import { currentTrial, filterOf, keepFilter } from "../../state/state";
import { Rows } from "../../ui/asked";

interface Kept {
  status: string | null;
  variant: string | null;
  benchmark: string | null;
}

const OTHERWISE: Kept = { status: null, variant: null, benchmark: null };
/** As in trials.sql. */
const MOST = 500;

const variantKey = ({ overlay, mode, encrypted }: Pick<TrialRow, "overlay" | "mode" | "encrypted">): string =>
  JSON.stringify([overlay, mode, encrypted]);

export function TrialList({
  run,
  chosen,
  onChoose,
}: {
  run: RunRow;
  chosen: number | null;
  onChoose: (trial: number | null) => void;
}) {
  const kinds = useQuery("trial_kinds", { run: run.run_id });
  const rows = kinds.rows ?? [];
  const options = {
    status: unique(rows.map(({ status }) => [status, status])),
    variant: unique(rows.map((row) => [variantKey(row), variantWords(row)])),
    benchmark: unique(rows.map(({ benchmark }) => [benchmark, clean(benchmark, 60)])),
  };
  const kept = filterOf("evidence", OTHERWISE);
  // What was kept for another run may not be here.
  const valid = (name: keyof Kept): string | null =>
    options[name].some(([key]) => key === kept[name]) ? kept[name] : null;
  const filter = { status: valid("status"), variant: valid("variant"), benchmark: valid("benchmark") };
  const trials = useQuery("trials", kinds.state === "ready" ? { run: run.run_id, ...filter } : null);
  const first = trials.rows?.[0]?.trial_id;
  const listed = trials.rows?.some(({ trial_id }) => trial_id === chosen) ?? true;
  // A trial that was come to from a plot stays, whatever the filters; one that the person has just filtered away goes.
  const filtered = useRef<string | null>(null);
  const key = JSON.stringify(filter);
  const choose = (part: Partial<Kept>): void => {
    filtered.current = JSON.stringify({ ...filter, ...part });
    keepFilter("evidence", { ...filter, ...part });
  };
  useEffect(() => {
    // Nor is a choice undone that was made since the list was drawn.
    if (trials.state !== "ready" || currentTrial.value !== chosen) return;
    const away = filtered.current === key && !listed;
    if (chosen === null ? first !== undefined : away) onChoose(first ?? null);
    // An effect of the list before may come after the choice.
    if (filtered.current === key) filtered.current = null;
  }, [trials.state, key, chosen, first, listed]);
  return (
    <section aria-label="Trials" class="trial-list">
      <Filter label="Status" options={options.status} value={filter.status} onChange={(status) => choose({ status })} />
      <Filter
        label="Overlay"
        options={options.variant}
        value={filter.variant}
        onChange={(variant) => choose({ variant })}
      />
      <Filter
        label="Benchmark"
        options={options.benchmark}
        value={filter.benchmark}
        onChange={(benchmark) => choose({ benchmark })}
      />
      <Rows
        asked={trials}
        empty={run.trials_planned ? "No trial matches these filters." : "This run has no trials: it checked profiles."}
      >
        {(found) => (
          <>
            {found.length === MOST ? <p class="quiet">The first {MOST}; filter to see others.</p> : null}
            {listed || chosen === null ? null : <Elsewhere onAll={() => keepFilter("evidence", OTHERWISE)} />}
            <ul>
              {found.map((row) => (
                <li key={row.trial_id}>
                  <Item row={row} chosen={row.trial_id === chosen} onChoose={onChoose} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Rows>
    </section>
  );
}

const Elsewhere = ({ onAll }: { onAll: () => void }) => (
  <p class="note" role="note">
    The trial that is shown is not in this list.{" "}
    <button type="button" class="link" onClick={onAll}>
      List all
    </button>
  </p>
);

function Item({ row, chosen, onChoose }: { row: TrialRow; chosen: boolean; onChoose: (trial: number) => void }) {
  return (
    <button
      type="button"
      aria-pressed={chosen}
      onClick={() => onChoose(row.trial_id)}
      title={row.reason === null ? undefined : clean(row.reason, 300)}
    >
      <span class={`status ${row.status}`}>{row.status}</span> {clean(row.benchmark, 60)}
      <small class="below">
        {variantWords(row)}, block {row.block}
        {row.warmup ? ", warm-up" : ""}
      </small>
    </button>
  );
}

const unique = (pairs: [string, string][]): [string, string][] => [...new Map(pairs)];

interface Choice {
  label: string;
  options: [string, string][];
  value: string | null;
  onChange: (value: string | null) => void;
}

function Filter({ label, options, value, onChange }: Choice) {
  if (options.length < 2) return null;
  return (
    <label class="below">
      {label}{" "}
      <select value={value ?? ""} onChange={(event) => onChange(event.currentTarget.value || null)}>
        <option value="">all</option>
        {options.map(([key, words]) => (
          <option value={key}>{words}</option>
        ))}
      </select>
    </label>
  );
}
