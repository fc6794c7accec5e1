import { expect, test } from "vitest";
import { duration, number, ratio, scaleOf, time, withUnit } from "../units";

const AUTO = { rateUnit: "auto", timeUnit: "auto" } as const;

test("one unit fits all values that stand together: the largest decides", () => {
  expect(scaleOf("bit/s", [95.7e6, 4.8e6, null], AUTO)).toEqual({ unit: "Mbit/s", factor: 1e6 });
  expect(scaleOf("bit/s", [972e6, 1.2e9], AUTO).unit).toBe("Gbit/s");
  expect(scaleOf("s", [395e-6, 3.058e-3], AUTO).unit).toBe("ms");
  expect(scaleOf("s", [395e-6], AUTO).unit).toBe("µs");
  expect(scaleOf("bytes", [1500], AUTO).unit).toBe("kB");
});

test("a unit that somebody likes is taken whatever the values are", () => {
  const scale = scaleOf("bit/s", [8 * 2 ** 20], { rateUnit: "MiB/s", timeUnit: "auto" });
  expect(withUnit(8 * 2 ** 20, scale)).toBe("1 MiB/s");
  expect(withUnit(0.0005, scaleOf("s", [0.0005], { rateUnit: "auto", timeUnit: "s" }))).toBe("0.0005 s");
});

test("an unknown unit is an error", () => {
  expect(() => scaleOf("furlong", [1], AUTO)).toThrow("unknown unit: furlong");
});

test("a missing value is a dash, and zero is zero", () => {
  expect(number(null)).toBe("–");
  expect(number(Number.NaN)).toBe("–");
  expect(number(0)).toBe("0");
  expect(withUnit(null, { unit: "ms", factor: 1e-3 })).toBe("–");
  expect(ratio(null)).toBe("–");
  expect(duration(null)).toBe("–");
  expect(time(null)).toBe("–");
});

test("numbers have four significant digits", () => {
  expect(number(95.6789)).toBe("95.68");
  expect(number(0.0378443)).toBe("0.03784");
  expect(number(36624)).toBe("36624");
  expect(number(-0.5)).toBe("-0.5");
  expect(number(100)).toBe("100");
  expect(ratio(0.8412)).toBe(".841");
  expect(ratio(1.0004)).toBe("1.000");
});

test("times of day say that they are UTC", () => {
  expect(time("2026-11-21T23:37:01Z")).toBe("2026-11-21 23:37 UTC");
  expect(duration(59.4)).toBe("59 s");
  expect(duration(462)).toBe("7 min 42 s");
  expect(duration(7260)).toBe("2 h 1 min");
});

test("a duration is rounded before it is divided", () => {
  expect([59.7, 119.7, 3599.6, 7199.9].map(duration)).toEqual(["1 min 0 s", "2 min 0 s", "1 h 0 min", "2 h 0 min"]);
});

test("a small value is never shown as none", () => {
  expect([2.5e-7, -3.1e-7, 0.0000378443, 0.99996].map((value) => number(value))).toEqual([
    "2.5e-7",
    "-3.1e-7",
    "0.00003784",
    "1",
  ]);
  expect(withUnit(0.31e-6, scaleOf("s", [0.31e-6], { rateUnit: "auto", timeUnit: "s" }))).toBe("3.1e-7 s");
  expect([0, 3e-7, 0.000031, 0.00054, 0.0054].map(ratio)).toEqual(["0", "3e-7", ".000031", ".00054", ".0054"]);
});
