/** Published ratios as the public view `comparison` has them beside what was measured: the JSON of db/README.md. */
import { finite, list, nullable, object, parsed, type Shaped, text, yesNo } from "./json";

const ONE = object({
  publication: text,
  cloud: text,
  instance: nullable(text),
  source: text,
  overlay_mtu: nullable(finite),
  tool: text,
  host_values: list(finite),
  overlay_values: list(finite),
  ratio: finite,
  low: nullable(finite),
  high: nullable(finite),
  coverage: nullable(finite),
  same_step: yesNo,
  comparable: yesNo,
  notes: list(text),
  flaws: list(text),
  as_printed: yesNo,
  verdict: nullable(text),
  reason: nullable(text),
});

export type PublishedRatio = Shaped<typeof ONE>;

/** Nothing where the text is not what it should be. */
export const publishedOf = (json: string): PublishedRatio[] => parsed(json, list(ONE)) ?? [];
