/** The page's process may end too: it is loaded again, once; when that does not help, main says so itself. */
import { type BrowserWindow, dialog } from "electron";

const SOON_MS = 30_000;

export function recoverFrom(window: BrowserWindow): void {
  let last = -Infinity;
  window.webContents.on("render-process-gone", (_event, { reason }) => {
    if (reason === "clean-exit" || window.isDestroyed()) return;
    const now = performance.now();
    const again = now - last < SOON_MS;
    last = now;
    if (!again) {
      window.webContents.reload();
      return;
    }
    const chosen = dialog.showMessageBoxSync(window, {
      type: "error",
      title: "overlaylab",
      message: "The page of the viewer ended twice within a short time.",
      detail: `The operating system says: ${reason}. This machine may be out of memory, or the file more than the viewer can draw. ./task results:show prints results without a window.`,
      buttons: ["Try again", "Close"],
    });
    if (chosen === 0) window.webContents.reload();
    else window.destroy();
  });
}
