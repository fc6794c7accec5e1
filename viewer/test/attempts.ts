/**
 * Attempts for tests. Synthetic: nobody tried these drills, and no node measured these values; a sine stands for noise.
 */
import { empty, insert, type Made } from "./make";

const DIGEST = "0".repeat(64);
const ROLES = ["client", "server"] as const;

export interface Cycle {
  t: number;
  role: (typeof ROLES)[number];
  phase: "healthy" | "broken" | "running" | "check";
  values: Partial<Record<(typeof MEASURES)[number], number | null>>;
  reasons?: Record<string, string>;
}
const SHARES = ["answered", "connected", "page", "fetched", "resolved"] as const;
const MEASURES = [...SHARES, "rtt", "connect", "goodput", "resolve"] as const;

/** UTC, that many seconds after another. */
const after = (iso: string, seconds: number): string =>
  `${new Date(Date.parse(iso) + seconds * 1000).toISOString().slice(0, 19)}Z`;

export interface Attempt {
  id: string;
  started: string;
  state: "running" | "repaired" | "given-up" | "abandoned";
  drill?: string;
  title?: string;
  trainee?: string;
  duration?: number;
  score?: number;
  cause?: string;
}

export function addAttempt(db: Made, { id, started, state, duration, score, cause, trainee, drill, title }: Attempt) {
  const { most } = db.prepare("SELECT coalesce(max(variant_id), 0) AS most FROM _variant").get() as { most: number };
  insert(db, "_variant", { variant_id: most + 1, overlay: "flannel", mode: `vxlan ${most + 1}`, encrypted: 0 });
  insert(db, "_attempt", {
    attempt_id: id,
    state,
    drill: drill ?? "downloads-hang",
    drill_digest: DIGEST,
    title: title ?? "Pages answer, downloads hang",
    level: 1,
    minutes: 15,
    trainee: trainee ?? null,
    started_at: started,
    ended_at: state === "running" ? null : after(started, duration ?? 300),
    duration: state === "repaired" || state === "given-up" ? (duration ?? 300) : null,
    score: state === "repaired" ? (score ?? 80) : null,
    cause: cause ?? null,
    machine: "synthetic",
    provider: "lxc",
    accelerator: "shared-kernel",
    cluster: "pair",
    profile: "none",
    profile_digest: DIGEST,
    variant_id: most + 1,
    role_digest: DIGEST,
  });
}

const next = (db: Made, table: string, id: string): number =>
  (db.prepare(`SELECT count(*) AS n FROM ${table} WHERE attempt_id = ?`).get(id) as { n: number }).n;

export function addEvent(db: Made, id: string, t: number, kind: string, detail: object = {}): void {
  const { started_at } = db.prepare("SELECT started_at FROM _attempt WHERE attempt_id = ?").get(id) as {
    started_at: string;
  };
  insert(db, "_attempt_event", {
    attempt_id: id,
    ordinal: next(db, "_attempt_event", id),
    t,
    at: after(started_at, t),
    kind,
    detail: JSON.stringify(detail),
  });
}

export function addCycle(db: Made, id: string, { t, role, phase, values, reasons = {} }: Cycle): void {
  insert(db, "_attempt_cycle", {
    attempt_id: id,
    ordinal: next(db, "_attempt_cycle", id),
    t,
    node: role === "client" ? "node1" : "node2",
    role,
    phase,
    ...Object.fromEntries(MEASURES.map((name) => [name, values[name] ?? null])),
    reasons: JSON.stringify(reasons),
  });
}

/** As on nodes that are well; large files hang while it is broken. */
export function cycle(t: number, role: Cycle["role"], phase: Cycle["phase"], broken: boolean): Cycle {
  const noise = 1 + 0.1 * Math.sin(7 * t + (role === "client" ? 0 : 1));
  const well = { answered: 1, rtt: 4e-4 * noise, connected: 1, connect: 5e-4 * noise, page: 1 };
  const names = { resolved: 1, resolve: 1.2e-3 * noise };
  return broken
    ? {
        ...{ t, role, phase },
        values: { ...well, ...names, fetched: 0, goodput: 9e4 * noise },
        reasons: { fetched: "16384 of 1000000 bytes within 3 s" },
      }
    : { t, role, phase, values: { ...well, ...names, fetched: 1, goodput: 9e8 * noise } };
}

export const TICKET = {
  ticket: "Customers say since 14:10 that pages open, but that downloads stop at once and never end.\n",
  may_touch: "Both nodes; not the firewall's policy.",
};
export const DEBRIEF = {
  topics: ["path MTU", "ICMP"],
  references: ["docs/overlays.md#flannel", "RFC 1191"],
  debrief:
    "ICMP *fragmentation needed* was dropped, so large segments vanished: goodput fell to **0.0001** of healthy.\n\n" +
    "Look first at:\n- `tracepath`\n- the counters of `iptables -vL`\n",
};

const finding = (measure: string, passes: boolean, found: number) => ({
  ...{ measure, role: "client", healthy: 1, seen: found, ratio: found, at_least: 0.9, at_most: null, passes },
  ...{ reason: passes ? null : "must be at least 0.9 of what it was", symptom: true },
});

/** From the baseline to the repair at `end`: with one hint, a wrong fix that a guard refuses, and the right one. */
export function addRepaired(db: Made, id: string, started: string, end = 300): void {
  addAttempt(db, {
    id,
    started,
    state: "repaired",
    duration: end,
    score: 75,
    trainee: "Kim",
    cause: "A rule drops ICMP.",
  });
  for (let t = -40; t <= end; t += t < 0 || t >= end - 30 ? 1 : 3) {
    if (t > -30 && t < -10) continue;
    const [phase, broken]: [Cycle["phase"], boolean] =
      t <= -30 ? ["healthy", false] : t < 0 ? ["broken", true] : ["running", t < end - 30];
    for (const role of ROLES) addCycle(db, id, cycle(t, role, phase, broken));
  }
  addEvent(db, id, -30, "baseline");
  addEvent(db, id, -12, "injected");
  addEvent(db, id, -4, "shown");
  addEvent(db, id, 0, "ticket", TICKET);
  addEvent(db, id, 90, "hint", { text: "Try a ping that may not be fragmented, of 1472 bytes.", cost: 5 });
  addEvent(db, id, 180, "check", {
    passes: false,
    findings: [finding("fetched", false, 0), finding("answered", true, 1)],
    refusals: [{ guard: "firewall", reason: "node1: the rule … -j ACCEPT is gone" }],
  });
  addEvent(db, id, end - 10, "check", { passes: true, findings: [finding("fetched", true, 1)], refusals: [] });
  addEvent(db, id, end, "repaired", DEBRIEF);
}

/** One that is at hand since `since` seconds before now. Its drill is its own, unless another is named. */
export function addRunning(db: Made, id: string, since: number, drill = "names-time-out"): void {
  const started = after(new Date().toISOString(), -since);
  addAttempt(db, { id, started, state: "running", drill, title: "Names time out", trainee: "Robin" });
  for (let t = -20; t < since; t += 1)
    for (const role of ROLES) addCycle(db, id, cycle(t, role, t < -10 ? "healthy" : "running", t >= -10));
  addEvent(db, id, -10, "injected");
  addEvent(db, id, 0, "ticket", { ...TICKET, ticket: "Since noon names take seconds, or are not found." });
}

/** A file with an attempt that was repaired, one given up and one abandoned. */
export function attemptsFile(path: string): Made {
  const db = empty(path);
  addRepaired(db, "20260105T141000Z-0001", "2026-01-05T14:10:00Z");
  addAttempt(db, { id: "20260106T090000Z-0002", started: "2026-01-06T09:00:00Z", state: "given-up", trainee: "Robin" });
  addEvent(db, "20260106T090000Z-0002", 0, "ticket", TICKET);
  addEvent(db, "20260106T090000Z-0002", 300, "solved-step", {
    does: "Delete the rule.",
    changes: { node1: ["nft: one rule less"] },
  });
  addEvent(db, "20260106T090000Z-0002", 300, "given-up", DEBRIEF);
  addAttempt(db, { id: "20260107T090000Z-0003", started: "2026-01-07T09:00:00Z", state: "abandoned" });
  return db;
}
