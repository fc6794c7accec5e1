import { expect, test } from "vitest";
import { distinctNames, plainName } from "../../src/contract/text";
import { variantWords } from "../../src/renderer/runs";
import { placedVariants } from "../../src/renderer/variants";

test("a name is shortened in its middle, to the letters that there is room for", () => {
  expect(plainName("cilium", 10)).toBe("cilium");
  expect(plainName("cilium-with-wireguard", 11)).toBe("ciliu…guard");
  expect(plainName("a\u202eb", 10)).toBe("a\ufffdb");
});

test("names that are alike when shortened are numbered, and a number that is a name already is passed over", () => {
  expect(distinctNames(["abcd1wxyz", "abcd2wxyz", "abc"], 8)).toEqual(["abcd…xyz", "ab…z (2)", "abc"]);
  expect(distinctNames(["a", "a (2)", "a"], 20)).toEqual(["a", "a (2)", "a (3)"]);
  expect(distinctNames(["a\u200b", "a\u200c"], 20)).toEqual(["a\ufffd", "a\ufffd (2)"]);
});

test("variants whose names begin alike are two, with a name each", () => {
  const long = "an-overlay-with-a-name-that-is-longer-than-any-plot-has-room-for-";
  const rows = ["one", "two"].map((end) => ({ overlay: `${long}${end}`, mode: null, encrypted: 0 }));
  const placed = [...placedVariants({ variants: "[]" }, rows).values()];
  expect(placed.map(({ name, at }) => [name, at])).toEqual([
    ["an-overlay-with-a-name-that-is…han-any-plot-has-room-for-one", 0],
    ["an-overlay-with-a-name-that-is…han-any-plot-has-room-for-two", 1],
  ]);
  expect(variantWords({ overlay: "weave", mode: "fastdp", encrypted: 1 })).toBe("weave fastdp encrypted");
});
