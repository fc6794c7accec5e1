/** SVG, PNG or CSV of one figure. */

import type { Figure } from "../charts/figure";
import { titled, WIDTH } from "../charts/picture";
import { theme, themed } from "../charts/theme";
import { csv } from "../lib/csv";
import { bridge } from "../state/bridge";
import { sayFailed } from "../state/failures";
import { plotly } from "./plotly";

const fileName = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60) || "plot";

async function picture(figure: Figure, format: "svg" | "png"): Promise<string> {
  const Plotly = await plotly();
  const { height = 420 } = figure.layout;
  const layout = () => structuredClone({ ...themed(figure.layout, theme(false)), height });
  // Only Plotly knows how many rows its legend takes: it is drawn once to be asked.
  const drawn = await Plotly.newPlot(document.createElement("div"), figure.data as never, {
    ...layout(),
    width: WIDTH,
  });
  const { t: top } = (drawn as unknown as { _fullLayout: { _size: { t: number } } })._fullLayout._size;
  Plotly.purge(drawn);
  const whole = titled(figure.title, layout(), height, top);
  const url = await Plotly.toImage(
    { data: figure.data as never, layout: whole as never },
    {
      format,
      width: WIDTH,
      height: whole.height as number,
      scale: format === "png" ? 2 : 1,
    },
  );
  const body = url.slice(url.indexOf(",") + 1);
  return format === "svg" ? decodeURIComponent(body) : body;
}

export function ExportMenu({ figure }: { figure: Figure }) {
  const save = async (kind: "svg" | "png" | "csv") => {
    const content = kind === "csv" ? csv(figure.grid) : await picture(figure, kind);
    sayFailed(await bridge.saveExport({ suggestedName: `${fileName(figure.title)}.${kind}`, kind, content }));
  };
  return (
    <span class="export" role="group" aria-label="Export this plot">
      {(["svg", "png", "csv"] as const).map((kind) => (
        <button type="button" onClick={() => void save(kind)}>
          {kind.toUpperCase()}
        </button>
      ))}
    </span>
  );
}
