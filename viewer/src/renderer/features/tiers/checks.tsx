/** The checks of each profile: a plot of ratios on their tolerance, and all of them as a table with units. */
import { useMemo } from "preact/hooks";
import type { TierCheckRow } from "../../../contract/tiers";
import { clean } from "../../lib/text";
import { number, scaleOf, time } from "../../lib/units";
import { useQuery } from "../../state/query";
import { chooseRun, filterOf, keepFilter, settings, show } from "../../state/state";
import { Rows } from "../../ui/asked";
import { Chart } from "../../ui/chart";
import { Choice, distinct, still } from "../../ui/choice";
import { TableScroll } from "../../ui/copied";
import { Text } from "../../ui/text";
import { isBound, measuredOverDeclared, tierChecks, verdictWords } from "./checks-figure";
import { mostChecked, newest, nodesOf } from "./newest";

const OTHERWISE = {
  profile: null as string | null,
  check: null as string | null,
  place: null as string | null,
  older: false,
};
type Kept = typeof OTHERWISE;
const choose = (part: Partial<Kept>): void => keepFilter("tiers", { ...filterOf("tiers", OTHERWISE), ...part });

export function CheckPart() {
  return (
    <Rows
      asked={useQuery("tier_checks", {})}
      empty="No run of this file has checked its profile. ./task bench:profiles checks all of them; a run with a profile checks its own."
    >
      {(rows) => <Checks rows={rows} />}
    </Rows>
  );
}

function Checks({ rows }: { rows: TierCheckRow[] }) {
  const kept = filterOf("tiers", OTHERWISE);
  const places = distinct(rows, nodesOf);
  const place = still(kept.place, places) ?? mostChecked(rows);
  const here = rows.filter((row) => nodesOf(row) === place);
  const current = newest(here);
  const runs = kept.older === true ? here : current;
  const profiles = distinct(runs, ({ profile }) => profile);
  const profile = still(kept.profile, profiles);
  const checks = distinct(runs, ({ name }) => name);
  const check = still(kept.check, checks);
  const shown = runs
    .filter((row) => (profile === null || row.profile === profile) && (check === null || row.name === check))
    .sort((a, b) => a.profile.localeCompare(b.profile, "en", { numeric: true }));
  return (
    <>
      <div class="filters">
        <Choice label="Nodes" value={place} options={places} onChoose={(value) => choose({ place: value })} />
        <Choice
          label="Profile"
          value={profile}
          options={profiles}
          all={`all ${profiles.length}`}
          onChoose={(value) => choose({ profile: value })}
        />
        <Choice
          label="Check"
          value={check}
          options={checks}
          all={`all ${checks.length}`}
          onChoose={(value) => choose({ check: value })}
        />
        {here.length > current.length ? (
          <label>
            <input
              type="checkbox"
              checked={kept.older === true}
              onChange={(event) => choose({ older: event.currentTarget.checked })}
            />{" "}
            also of older runs
          </label>
        ) : null}
        {places.length === 1 && place ? <span class="quiet">{clean(place, 160)}</span> : null}
      </div>
      <Drawn rows={shown} several={kept.older === true} />
    </>
  );
}

/** Rows with a ratio; more in one picture than anyone reads, and slow. */
const MOST = 150;

function Drawn({ rows, several }: { rows: TierCheckRow[]; several: boolean }) {
  const drawn = rows.filter((row) => measuredOverDeclared(row) !== null);
  const part = drawn.slice(0, MOST);
  const key = JSON.stringify(rows.map(({ check_id }) => check_id));
  const figure = useMemo(() => tierChecks(part, several), [key, several]);
  return (
    <>
      {drawn.length ? (
        <Chart
          figure={figure}
          height={Math.max(220, 100 + part.length * 20)}
          behind="Overview"
          onPoint={(run) => {
            chooseRun(String(run));
            show("overview");
          }}
        />
      ) : (
        <p class="empty">None of these checks has a declared value to be held against.</p>
      )}
      {drawn.length > MOST ? (
        <p class="note">
          The plot shows the first {MOST} of {drawn.length} checks. Choose a profile or a check.
        </p>
      ) : null}
      {drawn.length ? (
        <p class="quiet">
          Grey: what the check allows around what is declared, or up to it where that is a bound. Not applicable: this
          accelerator cannot carry it, which is no failure of the profile.
        </p>
      ) : null}
      <TableScroll label="All checks">
        <table class="wide dense">
          <thead>
            <tr>
              {["Profile", "Check", "Between", "Declared", "Tolerance", "Measured", "Verdict", "Why", "Run"].map(
                (word) => (
                  <th scope="col" class={CLASSES[word] ?? ""}>
                    {word}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 1000).map((row) => (
              <CheckLine row={row} key={row.check_id} />
            ))}
          </tbody>
        </table>
      </TableScroll>
      {rows.length > 1000 ? <p class="note">The first 1000 of {rows.length} checks.</p> : null}
    </>
  );
}

const CLASSES: Record<string, string> = { Declared: "number", Tolerance: "number", Measured: "number", Why: "why" };

function CheckLine({ row }: { row: TierCheckRow }) {
  const scale = scaleOf(row.unit, [row.expected, row.measured], settings.value);
  const unit = scale.unit && scale.unit !== "ratio" ? ` ${scale.unit}` : "";
  const shown = (value: number | null): string => (value === null ? "–" : `${number(value, scale)}${unit}`);
  return (
    <tr>
      <td>
        <Text value={row.profile} most={60} />
      </td>
      <td>{clean(row.name)}</td>
      <td>
        {clean(row.client_node, 40)} → {clean(row.server_node, 40)}
      </td>
      <td class="number nowrap">{shown(row.expected)}</td>
      <td class="number nowrap">
        {row.tolerance === null ? "–" : isBound(row) ? "at most" : `± ${shown(row.tolerance)}`}
      </td>
      <td class="number nowrap">
        {shown(row.measured)}
        {row.low !== null && row.high !== null ? (
          <small class="below">
            {number(row.low, scale)} to {shown(row.high)}
          </small>
        ) : null}
      </td>
      <td class={`verdict ${["pass", "fail", "not-applicable"].includes(row.verdict) ? row.verdict : ""}`}>
        {verdictWords(row.verdict)}
      </td>
      <td>
        <Text value={row.reason} />
      </td>
      <td class="when">{time(row.created_at)}</td>
    </tr>
  );
}
