/** What was published for the tier of a run, in the words of a cell and of a hover. */
import type { PublishedRatio } from "../../lib/published";
import { clean } from "../../lib/text";
import { number, ratio } from "../../lib/units";

/** .729; = where the publication's own tool could not tell them apart. */
export const publishedCell = (one: PublishedRatio): string => (one.same_step ? "=" : ratio(one.ratio));

/** Line by line: where it comes from, how exact it was printed, whether it is reproduced, what is particular or wrong. */
export function publishedWords(one: PublishedRatio): string[] {
  const sure = one.coverage === null ? "by rounding alone" : `with ${number(one.coverage * 100)} % confidence`;
  return [
    `${clean(one.publication)}: ${clean(one.source)}`,
    one.same_step
      ? `${ratio(one.ratio)}, within one step of its tool: says nothing`
      : `ratio ${ratio(one.ratio)}${one.low !== null && one.high !== null ? `, between ${ratio(one.low)} and ${ratio(one.high)} ${sure}` : ""}`,
    ...(one.comparable ? [] : ["measured at another overlay MTU than here"]),
    ...(one.verdict === null
      ? []
      : [`held against this run alone: ${clean([one.verdict, one.reason].filter(Boolean).join(", "), 110)}`]),
    ...[...one.notes, ...one.flaws].slice(0, 4).map((words) => clean(words, 110)),
  ];
}
