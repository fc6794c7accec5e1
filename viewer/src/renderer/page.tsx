/** Begins the page: reads what is open, and draws the app. */
import { effect } from "@preact/signals";
import { render } from "preact";
import { VIEWS } from "../contract/views";
import { App } from "./app/app";
import { exportAll } from "./app/export-page";
import { sayUncaught } from "./app/uncaught";
import { bridge } from "./state/bridge";
import { begin, view } from "./state/state";
import { plotly } from "./ui/plotly";
import "./app/title";
import "./state/theme";

// Plotly is read while the first rows are asked for. Should it fail, the plot says so.
effect(() => {
  if (VIEWS.find(({ id }) => id === view.value)?.plots) plotly().catch(() => undefined);
});

const place = document.getElementById("app");
bridge.on("command", (told) => {
  if (told.name === "export-all") void exportAll();
});
sayUncaught();
if (place) {
  // A page without its settings is better than none: what kept them from being read is said on it.
  const draw = () => render(<App />, place);
  begin().then(draw, (error: unknown) => {
    draw();
    throw error;
  });
}
