import { expect, test } from "vitest";
import { runOf, withRun } from "../chosen-runs";

test("each file has its own run, the one chosen last", () => {
  const kept = withRun(withRun(withRun(undefined, "/a", "1"), "/b", "2"), "/a", "3");
  expect([runOf(kept, "/a"), runOf(kept, "/b"), runOf(kept, "/c")]).toEqual(["3", "2", null]);
  expect(kept).toHaveLength(2);
});

test("twenty files, and then the one chosen in longest ago goes", () => {
  let kept: unknown;
  for (let at = 0; at < 21; at++) kept = withRun(kept, `/${at}`, "x");
  expect(kept).toHaveLength(20);
  expect([runOf(kept, "/0"), runOf(kept, "/1"), runOf(kept, "/20")]).toEqual([null, "x", "x"]);
});

test("settings that hold something else count as none", () => {
  for (const kept of [null, "x", {}, [1], [{ path: "/a" }]]) {
    expect(runOf(kept, "/a")).toBeNull();
    expect(withRun(kept, "/a", "1")).toEqual([{ path: "/a", run: "1" }]);
  }
});
