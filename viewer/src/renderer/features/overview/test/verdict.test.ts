import { expect, test } from "vitest";
import type { VerdictRow } from "../../../../contract/overview";
import { UNITS } from "../../../charts/test/golden";
import { verdictSentence } from "../verdict";
import rows from "./rows/verdicts.json";

test("verdicts in sentences", () => {
  const [host, sleeve] = rows as VerdictRow[];
  expect(host && verdictSentence(host, UNITS)).toBe(
    "927.3 Mbit/s, median of 6 blocks: what the others are compared with.",
  );
  const few: VerdictRow = {
    ...(sleeve as VerdictRow),
    ratio_blocks: 3,
    verdict: null,
    verdict_words: null,
    interval_low: null,
  };
  expect(verdictSentence(few, UNITS)).toMatch(
    /^no verdict below six blocks: 32\.83 Mbit\/s, \.0352 of the host \(blocks: /,
  );
  expect(verdictSentence({ ...few, provisional: 1 }, UNITS)).toMatch(/^no verdict before the run ends: /);
});

test("one block has no range, and is not said to have one", () => {
  const row = {
    ...{ overlay: "weave", mode: "fastdp", encrypted: 0, unit: "bit/s", median: 95e6, blocks: 1, left_out: 0 },
    ...{ ratio: 0.994, ratio_low: 0.994, ratio_high: 0.994, ratio_same_step: 0, ratio_blocks: 1 },
    ...{ interval_low: null, interval_high: null, coverage: null, verdict_words: null, provisional: 0 },
  } as unknown as VerdictRow;
  const said = (part: Partial<VerdictRow>) => verdictSentence({ ...row, ...part }, UNITS);
  expect(said({})).toBe("no verdict below six blocks: 95 Mbit/s, .994 of the host, 1 block.");
  expect(said({ ratio_low: 0.9, ratio_blocks: 2 })).toBe(
    "no verdict below six blocks: 95 Mbit/s, .994 of the host (blocks: .900 to .994), 2 blocks.",
  );
});
