/** How far runs moved from the first, as a table, with how it was made; and what the host itself did. */
import type { RunTableRow, RunValueRow } from "../../../contract/runs";
import { variantWords } from "../../lib/runs";
import { clean } from "../../lib/text";
import { number, ratio, scaleOf, withUnit } from "../../lib/units";
import { settings } from "../../state/state";
import { TableScroll } from "../../ui/copied";
import type { Chosen } from "./chosen";
import { hostOf, series } from "./compare";
import { type Against, changeWords } from "./figure";
import { median } from "./mann-whitney";

export function Differences({ against, table }: { against: Against[]; table: RunTableRow }) {
  const ratios = against.some(({ changes }) => changes.some(({ kind }) => kind === "ratio"));
  const values = against.flatMap(({ changes }) =>
    changes.flatMap(({ first, second, estimate }) => [first.median, second.median, estimate]),
  );
  const scale = scaleOf(table.unit, values, settings.value);
  const shown = (value: number | null): string => (ratios ? ratio(value) : withUnit(value, scale));
  const what = ratios ? "ratio to host" : "median";
  const headings = [
    ...(against.length > 1 ? ["Run"] : []),
    "Overlay",
    "Blocks",
    `first (${what})`,
    "second",
    ratios ? "second over first" : "second less first",
    "interval",
    "Verdict",
  ];
  const margin = [...new Set(against.map(({ rules }) => number(rules.margin * 100)))].join(" or ");
  // A margin is one of ratios, or points of what is a ratio itself; counts have none.
  const points = ratios ? "%" : "points";
  const within =
    ratios || table.unit === "ratio"
      ? `same where all of the interval lies within ${margin} ${points} (grey)`
      : "same where all of it is zero";
  const looks = against.some(({ rules }) => rules.shares > 1) ? ", at all looks of both together" : "";
  return (
    <>
      <TableScroll label="Differences">
        <table class="wide">
          <thead>
            <tr>
              {headings.map((word) => (
                <th scope="col" class={["Run", "Overlay", "Verdict"].includes(word) ? "" : "number"}>
                  {word}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {against.flatMap(({ name, changes, hindered }) =>
              changes.map((change) => (
                <tr>
                  {against.length > 1 ? <td class="nowrap">{clean(name)}</td> : null}
                  <td class="nowrap">{clean(variantWords(change), 60)}</td>
                  <td class="number">
                    {change.first.n}, {change.second.n}
                  </td>
                  <td class="number">{shown(change.first.median)}</td>
                  <td class="number">{shown(change.second.median)}</td>
                  <td class="number">{shown(change.estimate)}</td>
                  <td class="number nowrap">
                    {change.interval ? `${shown(change.interval.low)} to ${shown(change.interval.high)}` : "–"}
                  </td>
                  <td>{changeWords(change, table, hindered)}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </TableScroll>
      <p class="quiet">
        {ratios ? "Second over first" : "Second less first"}: median of all pairs of blocks, and where it lies with 95 %
        or more{looks} (Hodges and Lehmann, Mann and Whitney); none below six blocks in each. Verdict, each row for
        itself: {within}; faster, slower, better, worse where all of it lies on that side; else cannot tell.
      </p>
    </>
  );
}

export function Hosts({ chosen, values, table }: { chosen: Chosen[]; values: RunValueRow[][]; table: RunTableRow }) {
  const hosts = chosen.map((_, at) => hostOf(series(values[at] ?? [])));
  const medians = hosts.map((host) => (host?.blocks.size ? median([...host.blocks.values()]) : null));
  if (medians.some((value) => value === null)) return null;
  const scale = scaleOf(table.unit, medians, settings.value);
  const free = ["bit/s", "s", "1/s"].includes(table.unit) ? ": ratios are free of it" : "";
  return (
    <p class="quiet">
      The host itself: {medians.map((value) => withUnit(value, scale)).join(", then ")}. That is not judged{free}.
    </p>
  );
}
