/** All views as one HTML file that opens without a network: tables as tables, plots as pictures, nothing that runs. */
import { VIEWS } from "../../contract/views";
import { bridge } from "../state/bridge";
import { sayFailed } from "../state/failures";
import { busy, file, show, view } from "../state/state";
import { snapshot } from "./export-snapshot";

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
/** A view that has not settled by then is exported as it stands. */
const PATIENCE_MS = 15_000;

export async function exportAll(): Promise<void> {
  const open = file.value;
  if (!open || busy.value) return;
  const before = view.value;
  const parts: string[] = [];
  try {
    for (const [at, { id, title }] of VIEWS.entries()) {
      busy.value = `Exporting ${title} (${at + 1} of ${VIEWS.length}) …`;
      show(id);
      const main = await settled();
      parts.push(`<section><h1>${title}</h1>${await snapshot(main)}</section>`);
    }
  } finally {
    show(before);
    busy.value = null;
  }
  const about = await bridge.about();
  const made = `overlaylab ${about.ok ? `${about.value.version} (${about.value.build})` : ""}`;
  const html = page(open.name, made, await style(), [...(await banners()), ...parts]);
  const saved = await bridge.saveExport({
    suggestedName: `${open.name.replace(/\.[^.]*$/, "")}.html`,
    kind: "html",
    content: html,
  });
  sayFailed(saved);
}

/** The view's element, once nothing in it is still being read or drawn. */
function settled(): Promise<HTMLElement> {
  const until = performance.now() + PATIENCE_MS;
  return new Promise((done) => {
    let quiet = 0;
    const look = () => {
      const main = document.querySelector("main") as HTMLElement;
      const waits = main.querySelector(".waiting, .plot:not([data-drawn])");
      // Two quiet frames: a question may be put only after the answer to another.
      quiet = waits ? 0 : quiet + 1;
      if (quiet > 2 || performance.now() > until) done(main);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}

/** What has to be known of the file before any of its numbers is read: it stands outside of the view. */
const banners = (): Promise<string[]> =>
  Promise.all(
    [...document.querySelectorAll<HTMLElement>(".content > .banner")].map(
      async (each) => `<div class="banner">${await snapshot(each)}</div>`,
    ),
  );

/** The page's own style sheet, as the browser has read it. */
const style = async (): Promise<string> =>
  [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n");

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

const page = (name: string, made: string, css: string, parts: string[]): string => `<!doctype html>
<html lang="en" data-theme="${document.documentElement.dataset.theme ?? "light"}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escaped(name)}</title>
<style>${css.replace(/<\//g, "")}
html, body { height: auto; } body { max-width: 1400px; margin: 0 auto; padding: 16px; } .grid-table, pre { max-height: none; } img { max-width: 100%; }</style>
</head>
<body>
<p>${escaped(name)}, by ${escaped(made)}</p>
${parts.join("\n")}
</body>
</html>
`;
