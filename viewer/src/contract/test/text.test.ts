import { expect, test } from "vitest";
import { distinctNames, ended, plainName } from "../text";

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

test("a sentence that was cut ends once", () => {
  expect([ended("another image: 252bbcfe0445…"), ended("another scale: 1, then 70")]).toEqual([
    "another image: 252bbcfe0445…",
    "another scale: 1, then 70.",
  ]);
});
