// Builds the viewer into dist/: `node build.mjs`, and again at each change with `--watch`.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { build, context } from "esbuild";
import { FEATURES, generate, SHARED_QUERIES } from "./generate.mts";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "dist");

/** The commit that this is built from, as whoever calls this knows it; none outside a checkout. */
function commit() {
  if (process.env.OVERLAYLAB_COMMIT) return process.env.OVERLAYLAB_COMMIT;
  try {
    return execFileSync("git", ["describe", "--always", "--dirty"], { cwd: here, stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim();
  } catch {
    return "no commit";
  }
}

const { version } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const common = {
  absWorkingDir: here,
  bundle: true,
  sourcemap: "linked",
  logLevel: "warning",
  define: { __VERSION__: JSON.stringify(version), __BUILD__: JSON.stringify(commit()) },
};
// What is shared by the oldest runtime that the viewer runs in (Electron 22) and the newest.
const node = {
  ...common,
  platform: "node",
  format: "cjs",
  target: "node16",
  external: ["electron", "@photostructure/sqlite"],
};
const targets = [
  { ...node, entryPoints: ["src/main/main.ts"], outfile: "dist/main.cjs" },
  { ...node, entryPoints: ["src/preload/preload.ts"], outfile: "dist/preload.cjs" },
  { ...node, entryPoints: ["src/database/process.ts"], outfile: "dist/database.cjs" },
  {
    ...common,
    entryPoints: ["src/renderer/page.tsx"],
    outfile: "dist/renderer.js",
    platform: "browser",
    format: "iife",
    target: "chrome108",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
  },
];

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
generate();
const policy = JSON.parse(readFileSync(join(here, "src/contract/policy.json"), "utf8")).directives.join("; ");
writeFileSync(
  join(out, "index.html"),
  readFileSync(join(here, "src/renderer/index.html"), "utf8").replace("{policy}", policy),
);
cpSync(join(here, "src/renderer/style.css"), join(out, "style.css"));
// The plots of two axes only: a third of the whole to read at each start, and nothing in it needs eval.
cpSync(join(here, "node_modules/plotly.js-cartesian-dist-min/plotly-cartesian.min.js"), join(out, "plotly.js"));

// Real recorded results, for whoever has none yet: `./task viewer:demo` keeps them at the newest schema.
writeFileSync(join(out, "demo.sqlite"), gunzipSync(readFileSync(join(here, "demo/demo.sqlite.gz"))));

if (process.argv.includes("--watch")) {
  for (const folder of [SHARED_QUERIES, FEATURES]) watch(folder, { recursive: true }, generate);
  for (const target of targets) await (await context(target)).watch();
} else {
  await Promise.all(targets.map((target) => build(target)));
}
