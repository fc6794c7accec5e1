/** The built app in the real Electron, under Xvfb, as an ordinary user: two files at a time, each on a screen of its own. */
import { defineConfig } from "vitest/config";

const screens = (process.env.VIEWER_SCREENS ?? process.env.DISPLAY ?? "").split(",");

export default defineConfig({
  // As an ordinary user where the checkout belongs to root: nothing may be written into it.
  test: {
    fsModuleCache: false,
    include: ["test/e2e/**/*.test.ts"],
    setupFiles: ["test/e2e/own-screen.ts"],
    // Half of a test's time is waiting for Electron.
    maxWorkers: screens.length,
    fileParallelism: screens.length > 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is waited for must come about; a busy machine may need more than the second that is the default.
    expect: { poll: { timeout: 20_000 } },
  },
});
