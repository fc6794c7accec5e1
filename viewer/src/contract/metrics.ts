/** Metrics by their names: a file of another lab may hold some that this one does not know. */
import { GOODPUT, LATENCY, LOOPS, type METRICS } from "./terms";

export type MetricName = keyof typeof METRICS;
export type LatencyMetric = Extract<MetricName, `${typeof LATENCY}_${string}`>;

export const isLatency = (metric: string): boolean => metric.startsWith(LATENCY);
/** Whether people call less or more of it faster and slower: less goodput and more latency are both slower. */
export const isSpeed = (metric: string): boolean => metric === GOODPUT || isLatency(metric);

/** What a tool sends next: after the answer, or when it is time; null where that is not known. */
export const loopOf = (tool: string): "closed" | "open" | null =>
  Object.hasOwn(LOOPS, tool) ? LOOPS[tool as keyof typeof LOOPS] : null;
