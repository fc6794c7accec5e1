/** Rows of a statement, as many as a page can take, and only of the kinds that a page expects. */
import type { DatabaseSync } from "@photostructure/sqlite";
import { type Answer, problem, value } from "../contract/answers";

export type Statement = ReturnType<InstanceType<typeof DatabaseSync>["prepare"]>;
export type Given = Record<string, string | number | null>;

export const MOST_ROWS = 500_000;
export const MOST_CHARACTERS = 64e6;

const TOO_LARGE = "Choose fewer runs, or a filter that leaves less. ./task results:export writes everything to a file.";

export function rows(statement: Statement, parameters: Given): Answer<unknown[]> {
  try {
    return read(statement, parameters);
  } catch (error) {
    // Integers that JavaScript cannot hold exactly: of a foreign file only. Read again, and rounded.
    if (!/too large to be represented/i.test(String(error))) throw error;
    statement.setReadBigInts(true);
    try {
      return read(statement, parameters);
    } finally {
      statement.setReadBigInts(false);
    }
  }
}

function read(statement: Statement, parameters: Given): Answer<unknown[]> {
  const found: Record<string, unknown>[] = [];
  let characters = 0;
  for (const row of statement.iterate(parameters) as Iterable<Record<string, unknown>>) {
    for (const name in row) {
      const cell = row[name];
      if (typeof cell === "string") characters += cell.length;
      else if (typeof cell === "bigint") row[name] = Number(cell);
      // No column of ours holds bytes: only a damaged or foreign file does.
      else if (typeof cell === "object" && cell !== null) row[name] = null;
    }
    found.push(row);
    if (found.length > MOST_ROWS) return problem("too-large", `The answer has more than ${MOST_ROWS} rows.`, TOO_LARGE);
    if (characters > MOST_CHARACTERS)
      return problem("too-large", `The answer holds more than ${MOST_CHARACTERS / 1e6} MB of text.`, TOO_LARGE);
  }
  return value(found);
}
