/** Unit tests: pure functions and golden figures. `vitest run -u` writes golden files anew: read their difference. */
import { defineConfig } from "vitest/config";
import { generate } from "./generate.mts";

// What was built last may be of other questions.
generate();

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: { include: ["src/**/test/*.test.ts", "test/unit/*.test.ts"], environment: "node" },
});
