import { expect, test } from "vitest";
import { COLOURS } from "../figure";
import { logAxis } from "../log-axis";
import { theme, themed } from "../theme";

test("no axis writes 1M for a million of its unit, and one with a format of its own keeps it", () => {
  const { xaxis, yaxis2 } = themed({ xaxis: { type: "log" }, yaxis2: { tickformat: ".0%" } }, theme(false));
  expect(xaxis).toMatchObject({ type: "log", exponentformat: "none", separatethousands: true });
  expect(yaxis2).toMatchObject({ tickformat: ".0%", exponentformat: "none" });
  expect(logAxis([1e-4, 1e6]).ticktext).toEqual([
    ...["0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"],
  ]);
});

/** https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio */
const luminance = (hex: string): number => {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one: string, other: string): number => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
};

test("every colour is seen on both grounds", () => {
  for (const ground of [theme(false).ground, theme(true).ground]) {
    for (const colour of COLOURS) expect(contrast(colour, ground), colour).toBeGreaterThan(2.2);
    expect(contrast("#999933", ground)).toBeGreaterThan(3);
  }
});
