/** What the nodes said before and after a trial, as differences. Pure: JSON in, rows out. */
import { anything, list, oneLine, parsed, record } from "../../lib/json";

export interface StateRow {
  /** Names down to the value, with dots. */
  path: string;
  before: string | number | null;
  after: string | number | null;
  /** Of numbers; null where one of them is none. */
  difference: number | null;
  changed: boolean;
}

export interface QdiscRow {
  name: string;
  counter: string;
  before: number | null;
  after: number | null;
  difference: number | null;
}

export interface NodeState {
  node: string;
  values: StateRow[];
  qdiscs: QdiscRow[];
}

type Leaf = string | number | null;
type Found = Record<string, unknown>;

/** More is not looked through by anybody. */
const MOST_LEAVES = 3000;
const COUNTERS = ["bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen"] as const;

const objects = record(anything);
const objectOr = (given: unknown): Found => (objects(given) ? given : {});

export function nodeStates(json: string | null): NodeState[] | null {
  const nodes = parsed(json, record(objects));
  if (!nodes) return null;
  return Object.entries(nodes).map(([node, { before, after, ...rest }]) => ({
    node,
    values: [...difference(objectOr(before), objectOr(after)), ...difference({}, rest)],
    qdiscs: qdiscs(before, after),
  }));
}

function difference(before: Found, after: Found): StateRow[] {
  const [old, now] = [leaves(before), leaves(after)];
  return [...new Set([...old.keys(), ...now.keys()])].map((path) => {
    const [was, is] = [old.get(path) ?? null, now.get(path) ?? null];
    const both = typeof was === "number" && typeof is === "number";
    return { path, before: was, after: is, difference: both ? is - was : null, changed: was !== is };
  });
}

/** Every value that is no object; lists are one value. Queueing disciplines have a table of their own. */
function leaves(found: Found): Map<string, Leaf> {
  const all = new Map<string, Leaf>();
  const walk = (value: unknown, path: string): void => {
    if (all.size >= MOST_LEAVES) return;
    if (objects(value)) for (const [name, inner] of Object.entries(value)) walk(inner, path ? `${path}.${name}` : name);
    else
      all.set(path, typeof value === "number" || typeof value === "string" || value === null ? value : oneLine(value));
  };
  for (const [name, value] of Object.entries(found)) if (name !== "qdisc") walk(value, name);
  return all;
}

function qdiscs(before: unknown, after: unknown): QdiscRow[] {
  const [old, now] = [named(before), named(after)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((name) =>
    COUNTERS.flatMap((counter) => {
      const [was, is] = [count(old.get(name), counter), count(now.get(name), counter)];
      return was === null && is === null
        ? []
        : [{ name, counter, before: was, after: is, difference: was === null || is === null ? null : is - was }];
    }),
  );
}

const named = (state: unknown): Map<string, Found> => {
  const given = objectOr(state).qdisc;
  const all = list(objects)(given) ? given : [];
  return new Map(all.slice(0, 100).map((each) => [`${oneLine(each.kind)} ${oneLine(each.handle)}`, each]));
};

const count = (qdisc: Found | undefined, counter: string): number | null => {
  const found = qdisc?.[counter];
  return typeof found === "number" ? found : null;
};
