/** The one window, where it was left, with every rule of security in force before anything is loaded. */
import { BrowserWindow, nativeTheme, session } from "electron";
import { recoverFrom } from "./recovery";
import { guardContent } from "./security/content";
import { guardNavigation } from "./security/navigation";
import { guardPermissions } from "./security/permissions";
import { preferences } from "./security/preferences";
import type { SettingsFile } from "./settings";

/** preload: path; page: file URL; folder: file URL of the page's folder, with a slash at its end. */
export function openWindow(preload: string, page: string, folder: string, settings: SettingsFile): BrowserWindow {
  guardContent(session.defaultSession, folder);
  guardPermissions(session.defaultSession);
  nativeTheme.themeSource = settings.value.theme;
  const { width, height, x, y, maximised } = settings.value.window;
  const window = new BrowserWindow({
    width,
    height,
    ...(x === undefined || y === undefined ? {} : { x, y }),
    minWidth: 800,
    minHeight: 560,
    show: false,
    title: "overlaylab",
    backgroundColor: nativeTheme.shouldUseDarkColors ? "#16191d" : "#ffffff",
    webPreferences: preferences(preload),
  });
  if (maximised) window.maximize();
  guardNavigation(window.webContents, page);
  recoverFrom(window);
  window.once("ready-to-show", () => window.show());
  window.on("close", () => {
    const bounds = window.getNormalBounds();
    settings.change({ window: { ...bounds, maximised: window.isMaximized() } });
  });
  void window.loadURL(page);
  return window;
}
