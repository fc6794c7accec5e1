/** Main's supervision of the database process, without a window: the test asks it through `app.evaluate`. */
import { join } from "node:path";
import { app } from "electron";
import { Database } from "../../../src/main/database";

const folder = process.argv[2] as string;
/** Of time, or of memory: a test waits for the one that it is about, however slow the machine. */
const LIMITS = {
  brief: { answer: 3, open: 60, memory: 4e9 },
  small: { answer: 600, open: 60, memory: 250e6 },
};

Object.assign(globalThis, {
  database: (path: string, limits: keyof typeof LIMITS) =>
    new Database(path, join(__dirname, "database.cjs"), join(folder, `copies-${limits}`), LIMITS[limits]),
});

void app.whenReady();
