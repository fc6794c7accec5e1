/** All SQL that the viewer ever runs over a file, by name: generate.mts gathers it from its files. */
import type { QueryName } from "../contract/queries";
import found from "../generated/queries.json";

/** A file that the contract does not name. */
type Unnamed = Exclude<keyof typeof found, QueryName>;

// Does not compile where a question has no file, or a file no question.
export const QUERIES: Record<QueryName, string> = found satisfies Partial<Record<Unnamed, never>>;
