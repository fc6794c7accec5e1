import { expect, test } from "vitest";
import { commandLine } from "../shell";

test("a command line that a shell reads back", () => {
  expect(commandLine(["iperf3", "--time", "5", "a b", "it's", "", "x\n\u001b[31m'"])).toBe(
    `iperf3 --time 5 'a b' 'it'\\''s' '' $'x\\x0a\\x1b[31m\\''`,
  );
});
