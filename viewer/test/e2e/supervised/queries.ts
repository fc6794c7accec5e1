/** The viewer's questions and some that never end, or take too much: only what is built for this test knows them. */
import { QUERIES as OURS } from "../../../src/database/queries";

const NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";

export const QUERIES: Record<string, string> = {
  ...OURS,
  endless: `${NUMBERS} SELECT max(i) AS i FROM n`,
  greedy: `${NUMBERS} SELECT count(DISTINCT i || hex(zeroblob(500000))) AS n FROM n`,
  crash: "SELECT crash() AS n",
};
