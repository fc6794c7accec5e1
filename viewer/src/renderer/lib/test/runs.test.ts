import { expect, test } from "vitest";
import { variantWords } from "../runs";

test("a mode that says that it encrypts does not say it twice", () => {
  expect(variantWords({ overlay: "weave", mode: "sleeve", encrypted: 1 })).toBe("weave sleeve encrypted");
  expect(variantWords({ overlay: "weave", mode: "sleeve-encrypted", encrypted: 1 })).toBe("weave sleeve-encrypted");
});
