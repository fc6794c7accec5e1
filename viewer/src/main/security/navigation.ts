/** Electron's security checklist, 13 and 14: the window shows our page and no other, and opens no window. */
import type { WebContents } from "electron";

export function guardNavigation(contents: WebContents, page: string): void {
  contents.on("will-navigate", (event) => event.preventDefault());
  contents.on("will-redirect", (event) => event.preventDefault());
  contents.on("will-attach-webview", (event) => event.preventDefault());
  contents.setWindowOpenHandler(() => ({ action: "deny" }));
  // Nobody is asked before about:blank, as it loads nothing: the window comes back from there.
  contents.on("did-navigate", (_event, url) => {
    if (url.split(/[?#]/)[0] !== page) void contents.loadURL(page);
  });
}
