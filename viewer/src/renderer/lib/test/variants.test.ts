import { expect, test } from "vitest";
import { variantWords } from "../runs";
import { placedVariants } from "../variants";

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
