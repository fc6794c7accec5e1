import { expect, test } from "vitest";
import { csv, tabbed } from "../csv";

test("a cell that a spreadsheet would run gets an apostrophe; numbers stay numbers", () => {
  const grid = {
    columns: [{ name: "overlay" }, { name: "goodput", unit: "Mbit/s" }],
    rows: [
      ["=1+1", -4.5],
      ["@x", null],
      ["+a,b", 0],
      ["\tq", 1],
    ],
  };
  expect(csv(grid)).toBe("overlay,goodput (Mbit/s)\r\n'=1+1,-4.5\r\n'@x,\r\n\"'+a,b\",0\r\n'\tq,1\r\n");
});

test("a formula behind white space or control characters gets one too", () => {
  const hidden = ["\n=1", " +1", " \r\n\t@x", "\u0000-1", "\nx", "\ufeff=1"];
  for (const text of hidden) expect(csv({ columns: [{ name: "a" }], rows: [[text]] })).toMatch(/\r\n"?'/);
  expect(csv({ columns: [{ name: "a" }], rows: [[" 1=1"]] })).toBe("a\r\n 1=1\r\n");
});

test("quotes and line ends are kept inside quotes", () => {
  expect(csv({ columns: [{ name: "a" }], rows: [['say "no"\nmore']] })).toBe('a\r\n"say ""no""\nmore"\r\n');
});

test("what is pasted has tabs, nothing for what is missing, and no formula", () => {
  const grid = {
    columns: [{ name: "overlay" }, { name: "goodput", unit: "Mbit/s" }, { name: "gained" }],
    rows: [
      ["=1+1", -4.5, "+12"],
      ["a\tb\r\nc", null, "-x"],
    ],
  };
  expect(tabbed(grid)).toBe("overlay\tgoodput (Mbit/s)\tgained\n'=1+1\t-4.5\t+12\na b c\t\t'-x");
});
