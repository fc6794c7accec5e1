import type { CompareQueries } from "./compare";
import type { EvidenceQueries } from "./evidence";
import type { LatencyQueries } from "./latency";
import type { LoadQueries } from "./load";
import type { OverviewQueries } from "./overview";
import type { PublicationsQueries } from "./publications";
import type { TiersQueries } from "./tiers";
import type { TimeQueries } from "./time";
import type { TwoRunsQueries } from "./two-runs";

/**
 * Every question that may be put to a database: name → parameters and one row of the answer. A name is a file in
 * src/database/queries; nothing else is ever executed. Rows are as SQLite has them: base units, null for missing.
 */
export interface Queries
  extends CompareQueries,
    EvidenceQueries,
    LatencyQueries,
    LoadQueries,
    OverviewQueries,
    PublicationsQueries,
    TiersQueries,
    TimeQueries,
    TwoRunsQueries {}

export type QueryName = keyof Queries;
export type Parameters<Name extends QueryName> = Queries[Name]["parameters"];
export type Row<Name extends QueryName> = Queries[Name]["row"];
export type Scalar = string | number | null;
