/** SVG, PNG or CSV of one figure. */

import { bridge } from "../bridge";
import { type Figure, plain } from "../charts/figure";
import { theme, themed } from "../charts/theme";
import { csv } from "../csv";
import { sayFailed } from "../failures";
import { plotly } from "../plotly";

const fileName = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 60) || "plot";

async function picture(figure: Figure, format: "svg" | "png"): Promise<string> {
  const Plotly = await plotly();
  const layout = {
    ...themed(figure.layout, theme(false)),
    // Above all else, on room of its own: a legend or an axis may be at the top too.
    title: {
      text: plain(figure.title, 300),
      font: { size: 15 },
      yref: "container",
      y: 1,
      yanchor: "top",
      pad: { t: 14 },
    },
    margin: { ...figure.layout.margin, t: (figure.layout.margin?.t ?? 10) + 50 },
  };
  const height = Math.max(400, (figure.layout.height ?? 640) + 50);
  const url = await Plotly.toImage(
    { data: figure.data as never, layout: { ...layout, height } as never },
    { format, width: 1200, height, scale: format === "png" ? 2 : 1 },
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
