/** The views in the order of the side bar; plots: false of those that are lists and tables. */
export const VIEWS = [
  { id: "overview", title: "Overview", plots: false },
  { id: "compare", title: "Compare", plots: true },
  { id: "load", title: "Offered load", plots: true },
  { id: "latency", title: "Latency", plots: true },
  { id: "tiers", title: "Tiers", plots: true },
  { id: "time", title: "Time", plots: true },
  { id: "evidence", title: "Evidence", plots: false },
  { id: "runs", title: "Runs side by side", plots: true },
  { id: "publications", title: "Publications", plots: true },
  { id: "training", title: "Training", plots: true },
] as const;

export type ViewId = (typeof VIEWS)[number]["id"];
