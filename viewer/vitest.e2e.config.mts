/** The built app in the real Electron: one window at a time, under Xvfb, as an ordinary user. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  // As an ordinary user where the checkout belongs to root: nothing may be written into it.
  test: {
    fsModuleCache: false,
    include: ["test/e2e/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is waited for must come about; a busy machine may need more than the second that is the default.
    expect: { poll: { timeout: 20_000 } },
  },
});
