/** A run in words: what it stands for, what it ran on, how much of it there is. */

import type { RunRow } from "../../contract/run";
import { ACCELERATORS } from "../../contract/terms";
import { counted } from "./counts";
import { enoughAfter, enoughWords, tierWords } from "./runs";
import { clean } from "./text";
import { time } from "./units";

/** The accelerator as it is to be understood; a file may hold one that is not known here. */
export const acceleratorWords = (accelerator: string): string =>
  Object.hasOwn(ACCELERATORS, accelerator)
    ? `${accelerator}: ${ACCELERATORS[accelerator as keyof typeof ACCELERATORS]}`
    : clean(accelerator);

const tier = (run: RunRow): string => {
  const name = tierWords(run);
  return name
    ? `${clean(name)} (profile ${clean(run.profile)})`
    : `profile ${clean(run.profile)}, which stands for no cloud tier`;
};

const state = ({ origin, state: found }: RunRow): string => (origin === "imported" ? "imported" : found);

/** One line of a select. */
export const runTitle = (run: RunRow): string =>
  [
    time(run.started_at ?? run.created_at),
    clean(run.suite, 40),
    clean(run.profile, 40),
    clean(run.cluster, 40),
    run.accelerator,
    ...(run.system === null ? [] : [clean(run.system, 30)]),
    state(run),
  ].join(" · ");

/** What a reader must know before believing a plot. */
export function runWords(run: RunRow): string {
  const enough = enoughAfter(run);
  const missing = [
    ...(run.trials_failed ? [`${run.trials_failed} failed`] : []),
    ...(run.trials_void ? [`${run.trials_void} withdrawn (void)`] : []),
    ...(enough === null && run.trials_done < run.trials_planned
      ? [`${run.trials_planned - run.trials_done} not run`]
      : []),
  ];
  const sentences = [
    `Tier: ${tier(run)}`,
    acceleratorWords(run.accelerator),
    ...(run.system === null ? [] : [`nodes: ${clean(run.system, 60)}`]),
    `machine: ${clean(run.machine, 160)}`,
    enough === null ? counted(run.blocks, "block") : enoughWords(enough, run),
    ...(run.scale === 1 ? [] : [`durations × ${run.scale}`]),
    `${counted(enough === null ? run.trials_planned : run.trials_done, "trial")}${missing.length ? `: ${missing.join(", ")}` : ""}`,
  ];
  return `${sentences.join(" · ")}.`;
}
