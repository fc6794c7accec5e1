/** What has to be known before two runs are held against each other. */

import type { RunTableRow } from "../../../contract/runs";
import { ended } from "../../../contract/text";
import { clean } from "../../lib/text";
import { time } from "../../lib/units";
import type { Chosen } from "./chosen";
import { changed, hindrances } from "./hindrances";

/** A run's time; and its file, where there are several. */
export const nameOf = (chosen: readonly Chosen[], { of, run }: Chosen): string =>
  [time(run.created_at), chosen.some((each) => each.of.id !== of.id) ? of.name : null].filter(Boolean).join(" ");

/** Whom a sentence is about: the two, or the first and one of several. */
export const between = (chosen: readonly Chosen[], other: Chosen): string =>
  chosen.length > 2 ? `Between the first and ${nameOf(chosen, other)}` : "Between them";

/** A digest tells by its beginning already. */
const short = (words: string): string => words.replace(/\b([0-9a-f]{12})[0-9a-f]{52}\b/g, "$1…");

export function Warnings({ chosen }: { chosen: Chosen[] }) {
  const [first, ...others] = chosen;
  if (!first) return null;
  return (
    <div class="against">
      {others.map((other) => {
        const against = hindrances(first.run, other.run);
        const changes = changed(first.run, other.run);
        const which = others.length > 1 ? `The first and ${nameOf(chosen, other)}` : "These two";
        return (
          <div key={`${other.of.id} ${other.run.run_id}`}>
            {against.length ? (
              <div class="banner" role="note">
                <strong>
                  {which} cannot be compared: {ended(clean(short(against.join("; ")), 400))}
                </strong>{" "}
                What differs below may be that alone. No verdict is given.
              </div>
            ) : null}
            {changes.length ? (
              <p>
                {between(chosen, other)}: {ended(clean(short(changes.join("; ")), 600))}
              </p>
            ) : null}
          </div>
        );
      })}
      {chosen.map((each) =>
        each.run.state === "done" ? null : (
          <p class="note" key={each.run.run_id}>
            {nameOf(chosen, each)} is {each.run.state}, not done: more blocks may change it.
          </p>
        ),
      )}
    </div>
  );
}

const keyOf = ({ benchmark, metric, place }: RunTableRow): string => JSON.stringify([benchmark, metric, place]);

/** What only one of the runs has, so that it is in no plot. tables: of each run. */
export function Absent({ chosen, tables }: { chosen: Chosen[]; tables: RunTableRow[][] }) {
  const all = tables.map((rows) => new Set(rows.map(keyOf)));
  return (
    <>
      {tables.map((rows, at) => {
        const own = rows.filter((row) => all.every((keys, other) => other === at || !keys.has(keyOf(row))));
        const names = [...new Set(own.map(({ benchmark, metric }) => `${benchmark}: ${metric.replaceAll("_", " ")}`))];
        const [run] = chosen.slice(at);
        return names.length && run ? (
          <p class="quiet">
            Only {nameOf(chosen, run)} has {ended(clean(names.join(", "), 400))}
          </p>
        ) : null;
      })}
    </>
  );
}
