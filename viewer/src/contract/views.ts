/** The views in the order of the side bar. */
export const VIEWS = [
  { id: "overview", title: "Overview" },
  { id: "compare", title: "Compare" },
  { id: "load", title: "Offered load" },
  { id: "latency", title: "Latency" },
  { id: "tiers", title: "Tiers" },
  { id: "time", title: "Time" },
  { id: "evidence", title: "Evidence" },
  { id: "runs", title: "Runs side by side" },
  { id: "publications", title: "Publications" },
] as const;

export type ViewId = (typeof VIEWS)[number]["id"];
