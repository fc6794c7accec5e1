/** What the page knows: open files, the one that is looked at, the view, settings. Everything else is asked for when needed. */
import { batch, computed, signal } from "@preact/signals";
import type { OpenFile } from "../../contract/files";
import { DEFAULTS, type Settings } from "../../contract/settings";
import { VIEWS, type ViewId } from "../../contract/views";
import { bridge } from "./bridge";
import { CHOSEN_RUNS, runOf, withRun } from "./chosen-runs";
import { fail, succeeded } from "./failures";

export const files = signal<OpenFile[]>([]);
export const currentFile = signal<string | null>(null);
export const settings = signal<Settings>(DEFAULTS);
export const view = signal<ViewId>("overview");
/** The run that the views show; null, or one that is not there any more: the newest. */
export const currentRun = signal<string | null>(null);
/** The trial whose evidence is shown. */
export const currentTrial = signal<number | null>(null);
export const helpShown = signal(false);
/** What is being done that takes a while, in words; null: nothing. */
export const busy = signal<string | null>(null);

export const file = computed(() => files.value.find(({ id }) => id === currentFile.value) ?? null);

let changes = 0;

export async function change(part: Partial<Settings>): Promise<void> {
  settings.value = { ...settings.value, ...part };
  const number = ++changes;
  const kept = await bridge.writeSettings(part);
  // An answer to an earlier change does not know of the later one.
  if (kept.ok && number === changes) settings.value = kept.value;
}

export function show(id: string): void {
  const found = VIEWS.find((each) => each.id === id);
  if (!found) return;
  view.value = found.id;
  void change({ view: found.id });
}

/** From any point of any plot to what is behind it. */
export function showTrial(trial: number): void {
  currentTrial.value = trial;
  show("evidence");
}

/** What a view keeps of its choices over a restart. */
export function filterOf<Kept extends object>(name: string, otherwise: Kept): Kept {
  const found = settings.value.filters[name];
  return typeof found === "object" && found !== null ? { ...otherwise, ...found } : otherwise;
}

export function keepFilter(name: string, kept: object): void {
  void change({ filters: { ...settings.value.filters, [name]: kept } });
}

export async function openFile(path?: string): Promise<void> {
  opened(await bridge.openFile(path), path ?? "");
}

export function opened(answer: Awaited<ReturnType<typeof bridge.openFile>>, path: string): void {
  if (!answer.ok) fail(path, answer.problem);
  else if (answer.value) add(answer.value);
}

/** Runs and trials are of one file: another file begins with the run that was chosen in it last. */
export function look(id: string | null): void {
  if (currentFile.value === id) return;
  batch(() => {
    currentFile.value = id;
    currentRun.value = chosenBefore();
    currentTrial.value = null;
  });
}

const chosenBefore = (): string | null =>
  file.value ? runOf(settings.value.filters[CHOSEN_RUNS], file.value.path) : null;

/** What a person chose is there after a restart; what a view merely came to show is not. */
export function chooseRun(run: string): void {
  batch(() => {
    // Else a trial that is still being read would bring its own run back.
    if (run !== currentRun.value) currentTrial.value = null;
    currentRun.value = run;
  });
  const path = file.value?.path;
  if (path !== undefined) keepFilter(CHOSEN_RUNS, withRun(settings.value.filters[CHOSEN_RUNS], path, run));
}

/** A run of any open file. */
export function lookAt(id: string, run: string): void {
  batch(() => {
    look(id);
    chooseRun(run);
  });
}

export function add(found: OpenFile): void {
  succeeded(found.path);
  files.value = [...files.value.filter(({ id }) => id !== found.id), found];
  look(found.id);
}

export async function closeFile(id: string): Promise<void> {
  await bridge.closeFile(id);
  files.value = files.value.filter((each) => each.id !== id);
  if (currentFile.value === id) look(files.value[0]?.id ?? null);
}

/** Listens to main, and takes over what is there already: files may have been opened before the page was ready. */
export async function begin(): Promise<void> {
  bridge.on("file:opened", add);
  bridge.on("file:changed", (found) => {
    files.value = files.value.map((each) => (each.id === found.id ? found : each));
  });
  bridge.on("file:failed", ({ path, problem }) => fail(path, problem));
  bridge.on("command", (told) => {
    if (told.name === "open") void openFile();
    if (told.name === "view") show(told.view);
    if (told.name === "theme") void change({ theme: told.theme });
    if (told.name === "help") helpShown.value = true;
  });
  const kept = await bridge.readSettings();
  if (kept.ok) {
    settings.value = kept.value;
    const found = VIEWS.find(({ id }) => id === kept.value.view);
    if (found) view.value = found.id;
    // A file that was opened before its settings were there.
    currentRun.value ??= chosenBefore();
  }
  const open = await bridge.openFiles();
  if (open.ok) open.value.forEach(add);
}
