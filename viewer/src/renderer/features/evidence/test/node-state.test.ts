import { expect, test } from "vitest";
import { nodeStates } from "../node-state";
import state from "./rows/node-state.json";

test("a node's state as differences, its queues apart", () => {
  const states = nodeStates(JSON.stringify(state));
  const sender = states?.find(({ node }) => node === "node1");
  expect(states?.map(({ node }) => node)).toEqual(["node1", "node2"]);
  const value = (path: string) => sender?.values.find((row) => row.path === path);
  expect(value("cpu.nice")).toEqual({ path: "cpu.nice", before: 0, after: 0, difference: 0, changed: false });
  const { tx_bytes: before } = state.node1.before;
  const { tx_bytes: after } = state.node1.after;
  expect(value("tx_bytes")).toEqual({ path: "tx_bytes", before, after, difference: after - before, changed: true });
  expect(sender?.qdiscs.find(({ name, counter }) => name === "htb 1:" && counter === "bytes")?.difference).toBe(
    (state.node1.after.qdisc[0]?.bytes ?? 0) - (state.node1.before.qdisc[0]?.bytes ?? 0),
  );
});

test("a state that is none is not known", () => {
  expect(nodeStates("{not json")).toBeNull();
  expect(nodeStates(null)).toBeNull();
  expect(nodeStates('{"node1": {"before": 7}}')).toEqual([{ node: "node1", values: [], qdiscs: [] }]);
});
