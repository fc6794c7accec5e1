/**
 * Databases for tests, made by our own migrations: small ones that hold something in every table, and ones that only a hand
 * that means harm could make. In a folder of the test's own, never committed.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";

const MIGRATIONS = join(__dirname, "..", "..", "db", "migrations");

export type Made = InstanceType<typeof DatabaseSync>;

export const NEWEST = readdirSync(MIGRATIONS).filter((name) => name.endsWith(".sql")).length;

/** An open database of that schema version, without a row. */
export function empty(path: string, version = NEWEST): Made {
  const db = new DatabaseSync(path, { defensive: false }); // a migration edits a CHECK in place
  db.exec("PRAGMA synchronous = OFF");
  for (const name of readdirSync(MIGRATIONS).sort().slice(0, version)) {
    db.exec(readFileSync(join(MIGRATIONS, name), "utf8"));
  }
  db.exec(`PRAGMA user_version = ${version}`);
  return db;
}

type Cell = string | number | null;

export function insert(db: Made, table: string, row: Record<string, Cell>): void {
  const names = Object.keys(row);
  db.prepare(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`).run(
    ...names.map((name) => row[name]),
  );
}

export interface Texts {
  /** Every text of the database that is free: an overlay's name, a reason, what a tool printed. */
  text: string;
  /** Every text that has to be JSON. */
  json: string;
  /** Every value of a metric. */
  value: number;
}

export const ORDINARY: Texts = { text: "ordinary", json: "{}", value: 1e9 };

export const RUN_ID = "20260101T000000Z-test";
const DIGEST = "0".repeat(64);

/** One run of an overlay and the host with trials of every status, and a row in each other table. */
export function fill(db: Made, { text, json, value }: Texts = ORDINARY, run = RUN_ID): void {
  const at = "2026-01-01T00:00:00Z";
  db.exec("BEGIN");
  const variant = (db.prepare("SELECT coalesce(max(variant_id), 0) AS most FROM _variant").get() as { most: number })
    .most;
  insert(db, "_variant", {
    variant_id: variant + 1,
    overlay: variant ? `host ${run}` : "host",
    mode: null,
    encrypted: 0,
  });
  insert(db, "_variant", { variant_id: variant + 2, overlay: `${text}${variant || ""}`, mode: text, encrypted: 1 });
  insert(db, "_run", {
    run_id: run,
    state: "done",
    origin: "measured",
    created_at: at,
    started_at: at,
    ended_at: at,
    machine: text,
    provider: text,
    accelerator: "tcg",
    image: text,
    cluster: text,
    profile: text,
    profile_digest: DIGEST,
    stands_for: json,
    suite: text,
    suite_digest: DIGEST,
    scale: 1,
    seed: 1,
    blocks: 2,
    role_digests: json,
    arguments: json,
  });
  // Columns that came with later schemas.
  for (const column of ["lab_version", "system", "kit"].filter((name) => keeps(db, name)))
    db.prepare(`UPDATE _run SET ${column} = ? WHERE run_id = ?`).run(text, run);
  for (const [ordinal, id] of [variant + 1, variant + 2].entries())
    insert(db, "_run_variant", { run_id: run, ordinal, variant_id: id });
  for (const name of ["node1", "node2"]) insert(db, "_node", { run_id: run, name, zone: text, details: json });
  const first = (db.prepare("SELECT coalesce(max(trial_id), 0) AS most FROM _trial").get() as { most: number }).most;
  let trial = first;
  for (const block of [1, 2]) {
    for (const [position, status] of ["ok", "ok", "failed", "void", "planned"].entries()) {
      const planned = status === "planned";
      insert(db, "_trial", {
        trial_id: ++trial,
        run_id: run,
        variant_id: variant + 1 + (position % 2),
        block,
        position,
        repetition: 1,
        warmup: 0,
        benchmark: text,
        tool: text,
        parameters: json,
        placement: "remote",
        client_node: "node1",
        server_node: "node2",
        direction: "client-to-server",
        status,
        reason: status === "failed" || status === "void" ? text : null,
        started_at: planned ? null : at,
        duration: planned ? null : 10,
        argv: planned ? null : json,
        exit_code: planned ? null : 0,
        tool_version: planned ? null : text,
        overlay_version: planned ? null : text,
        overlay_mtu: 1410,
        underlay_mtu: 1500,
      });
      if (planned) continue;
      insert(db, "_output", { trial_id: trial, stdout: text, stderr: text, node_state: json });
      insert(db, "_evidence", {
        run_id: run,
        trial_id: trial,
        variant_id: variant + 1,
        recorded_at: at,
        node: text,
        kind: text,
        phase: text,
        ok: position % 2,
        expected: json,
        observed: json,
        reason: text,
      });
      if (status === "failed") continue;
      for (const metric of [10, 30, 40, 50, 60]) {
        for (const ordinal of [0, 1, 2]) {
          insert(db, "_sample", {
            trial_id: trial,
            ordinal: metric * 10 + ordinal,
            metric_id: metric,
            quantile: null,
            t_start: ordinal,
            t_end: ordinal + 1,
            value,
            resolution: null,
          });
        }
        const all = Object.fromEntries(
          ["value", "mean", "min", "p01", "p05", "p25", "p50", "p75", "p95", "p99", "max"].map((name) => [name, value]),
        );
        insert(db, "_trial_summary", { trial_id: trial, metric_id: metric, basis: "interval", n: 3, ...all });
        insert(db, "_histogram", { trial_id: trial, metric_id: metric, lower: 0, upper: 1, n: 3 });
      }
    }
  }
  insert(db, "_profile_check", {
    run_id: run,
    recorded_at: at,
    name: text,
    client_node: "node1",
    server_node: "node2",
    expected: value,
    measured: value,
    tolerance: 0.1,
    unit: "bit/s",
    verdict: "fail",
    reason: text,
  });
  insert(db, "_published", {
    publication: text,
    cloud: text,
    instance: text,
    overlay: text,
    mode: text,
    overlay_version: text,
    overlay_mtu_bytes: 1410,
    tool: text,
    protocol: "tcp",
    metric: "goodput",
    statistic: "single",
    repetition: 1,
    value,
    unit: "bit/s",
    parameters: text,
    note: text,
  });
  if (has(db, "_comparison")) {
    insert(db, "_comparison_made", {
      run_id: run,
      made_by: 1,
      made_at: at,
      published: DIGEST,
      trials_done: 8,
      blocks_done: 2,
      margin: 0.02,
    });
    for (const ordinal of [0, 1]) {
      const ratio = ordinal ? 0.5 : 1;
      insert(db, "_comparison", {
        run_id: run,
        ordinal,
        variant_id: variant + 1 + ordinal,
        benchmark: text,
        metric_id: 10,
        placement: "remote",
        direction: "client-to-server",
        client_node: "node1",
        server_node: "node2",
        place: text,
        tools: json,
        step: null,
        is_primary: 1,
        blocks: 2,
        median: value,
        low: value,
        high: value,
        ratio_blocks: 2,
        ratio,
        ratio_low: ratio,
        ratio_high: ratio,
        ratio_same_step: 0,
        interval_low: ratio,
        interval_high: ratio,
        coverage: 0.95,
        verdict: "lower",
        verdict_words: text,
        p: 0.01,
        verdict_alone: "lower",
        verdict_alone_words: text,
        left_out: 0,
        theory: 0.9,
        published: json,
      });
    }
  }
  if (has(db, "_attempt")) fillAttempt(db, { text, json, value }, variant + 2, run);
  db.exec("COMMIT");
}

/** An attempt that was given up, with an event of every kind that tells something. */
function fillAttempt(db: Made, { text, json, value }: Texts, variant: number, attempt: string): void {
  const at = "2026-01-01T00:00:00Z";
  insert(db, "_attempt", {
    attempt_id: attempt,
    state: "given-up",
    drill: text,
    drill_digest: DIGEST,
    title: text,
    level: 1,
    minutes: 15,
    trainee: text,
    started_at: at,
    ended_at: at,
    duration: 60,
    cause: text,
    machine: text,
    provider: text,
    accelerator: "tcg",
    image: text,
    cluster: text,
    profile: text,
    profile_digest: DIGEST,
    variant_id: variant,
    role_digest: DIGEST,
  });
  const details: [kind: string, detail: object | null][] = [
    ["ticket", { ticket: text, may_touch: text }],
    ["hint", { text, cost: 5 }],
    ["check", { passes: false, findings: [], refusals: [{ guard: text, reason: text }] }],
    ["check", null],
    ["solved-step", { does: text, changes: { [text]: [text] } }],
    ["given-up", { debrief: text, topics: [text], references: [text] }],
  ];
  for (const [ordinal, [kind, detail]] of details.entries())
    insert(db, "_attempt_event", {
      attempt_id: attempt,
      ordinal,
      t: ordinal,
      at,
      kind,
      detail: detail === null ? json : JSON.stringify(detail),
    });
  for (const ordinal of [0, 1, 2])
    insert(db, "_attempt_cycle", {
      attempt_id: attempt,
      ordinal,
      t: ordinal - 1,
      node: text,
      role: "client",
      phase: ordinal ? "running" : "healthy",
      answered: 1,
      rtt: value < 0 ? null : value,
      connected: 1,
      connect: null,
      page: 1,
      fetched: 1,
      goodput: value < 0 ? null : value,
      resolved: 0,
      resolve: null,
      reasons: JSON.stringify({ connect: text, resolve: text }),
    });
}

const has = (db: Made, table: string): boolean =>
  db.prepare("SELECT count(*) AS n FROM sqlite_master WHERE name = ?").get(table).n === 1;

/** Whether runs have that column in the file's schema. */
const keeps = (db: Made, column: string): boolean =>
  db.prepare("SELECT count(*) AS n FROM pragma_table_info('_run') WHERE name = ?").get(column).n === 1;

/** A whole file: made, filled and closed. */
export function make(path: string, given: Texts = ORDINARY, version = NEWEST): string {
  const db = empty(path, version);
  fill(db, given);
  db.close();
  return path;
}
