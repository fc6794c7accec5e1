import { expect, test } from "vitest";
import { anything, either, finite, list, nullable, object, optional, parsed, record, text, yesNo } from "../json";

const VARIANTS = list(object({ overlay: text, mode: nullable(text), encrypted: yesNo }));

test("a text of the expected shape is what it says", () => {
  expect(parsed('[{"overlay":"weave","mode":null,"encrypted":false,"more":1}]', VARIANTS)).toEqual([
    { overlay: "weave", mode: null, encrypted: false, more: 1 },
  ]);
  expect(parsed('{"a":{"b":1}}', record(record(finite)))).toEqual({ a: { b: 1 } });
  expect(parsed('{"a":1}', object({ a: finite, b: optional(text) }))).toEqual({ a: 1 });
  expect(parsed('["x",2]', list(either(text, finite)))).toEqual(["x", 2]);
  expect(parsed("null", nullable(text))).toBeNull();
  expect(parsed("[[]]", anything)).toEqual([[]]);
});

test.each([
  null,
  undefined,
  "",
  "{",
  "NaN",
  "null",
  "17",
  '"weave"',
  "{}",
  "[null]",
  '[{"overlay":1,"mode":null,"encrypted":false}]',
  '[{"overlay":"weave","encrypted":false}]',
  '[{"__proto__":{"overlay":"weave","mode":null,"encrypted":false}}]',
  "[".repeat(200_000),
])("another is null, never an exception: %.30s", (given) => {
  expect(parsed(given, VARIANTS)).toBeNull();
});

test("a list is no object, and what an object inherits does not count", () => {
  expect(parsed("[]", record(anything))).toBeNull();
  expect(parsed("{}", object({ toString: anything, constructor: text }))).toBeNull();
  expect(parsed("1e999", finite)).toBeNull();
});
