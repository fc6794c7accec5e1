import { expect, test } from "vitest";
import { sorted } from "../sorted";

test("sorting keeps what is missing last, either way", () => {
  const column = { title: "n", by: (row: number | null) => row, cell: String };
  expect(sorted([2, null, 1], column, false)).toEqual([1, 2, null]);
  expect(sorted([2, null, 1], column, true)).toEqual([2, 1, null]);
});
