/** Unit tests: pure functions and golden figures. `vitest run -u` writes golden files anew: read their difference. */
import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    {
      name: "sql-as-text",
      enforce: "pre",
      load: (id) => (id.endsWith(".sql") ? `export default ${JSON.stringify(readFileSync(id, "utf8"))}` : null),
    },
  ],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: { include: ["test/unit/**/*.test.ts", "test/unit/**/*.test.tsx"], environment: "node" },
});
