import { expect, test } from "vitest";
import { plain } from "../figure";

test("no text of a database is markup in a plot, reorders it, or fills it", () => {
  expect(plain('<b>x</b> & <a href="y">')).toBe('&lt;b&gt;x&lt;/b&gt; &amp; &lt;a href="y"&gt;');
  expect(plain("a\u202eb\u0007c\u200b")).toBe("a\ufffdb\ufffdc\ufffd");
  expect(plain("x".repeat(1_000_000)).length).toBe(80);
});
