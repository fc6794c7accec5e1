/** Plotly is loaded for the first view that draws plots: lists and tables need not wait for it. */
type Plotly = typeof import("plotly.js");

let loading: Promise<Plotly> | null = null;

export function plotly(): Promise<Plotly> {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "plotly.js";
    script.onload = () => done((window as unknown as { Plotly: Plotly }).Plotly);
    script.onerror = () => failed(new Error("plotly.js could not be loaded"));
    document.head.append(script);
  });
  return loading;
}
