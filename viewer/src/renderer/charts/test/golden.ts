/** Figures as text, to be compared with the file that a person has looked at. `vitest run -u` writes them anew. */
import type { Figure } from "../figure";

export const asText = (figure: Figure): string => `${JSON.stringify(figure, null, 1)}\n`;

export const UNITS = { rateUnit: "auto", timeUnit: "auto" } as const;

type Trace = {
  name?: string;
  mode?: string;
  x: (number | null)[];
  y: (number | null)[];
  marker?: { symbol?: unknown };
};

export const traces = (figure: Figure): Trace[] => figure.data as unknown as Trace[];
