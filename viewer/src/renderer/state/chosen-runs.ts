/** Which run was chosen in which file, as the settings keep it: the newest choice last, and not of every file that ever was. */
import { list, object, type Shaped, text } from "../lib/json";

export const CHOSEN_RUNS = "chosen-runs";
const MOST = 20;

const KEPT = list(object({ path: text, run: text }));
type Kept = Shaped<typeof KEPT>;

const known = (kept: unknown): Kept => (KEPT(kept) ? kept : []);

export const runOf = (kept: unknown, path: string): string | null =>
  known(kept).find((each) => each.path === path)?.run ?? null;

export const withRun = (kept: unknown, path: string, run: string): Kept => [
  ...known(kept)
    .filter((each) => each.path !== path)
    .slice(1 - MOST),
  { path, run },
];
