import type { FunctionComponent } from "preact";
import type { ViewId } from "../../contract/views";
import { Compare } from "./compare";
import { Evidence } from "./evidence";
import { LatencyView } from "./latency";
import { OfferedLoad } from "./load";
import { Overview } from "./overview";
import { Publications } from "./publications";
import { RunsSideBySide } from "./runs";
import { Tiers } from "./tiers";
import { Time } from "./time";

export const PAGES: Record<ViewId, FunctionComponent> = {
  overview: Overview,
  compare: Compare,
  load: OfferedLoad,
  latency: LatencyView,
  tiers: Tiers,
  time: Time,
  evidence: Evidence,
  runs: RunsSideBySide,
  publications: Publications,
};
