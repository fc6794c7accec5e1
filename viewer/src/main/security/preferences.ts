/** Electron's security checklist, 3, 4 and 6: context isolation, the process sandbox, web security. Stated, though defaults. */
import type { WebPreferences } from "electron";

export const preferences = (preload: string): WebPreferences => ({
  preload,
  sandbox: true,
  contextIsolation: true,
  nodeIntegration: false,
  nodeIntegrationInWorker: false,
  nodeIntegrationInSubFrames: false,
  webSecurity: true,
  allowRunningInsecureContent: false,
  experimentalFeatures: false,
  webviewTag: false,
  spellcheck: false,
  // The page says what is in a file; nothing of it is for other programs' services.
  disableDialogs: true,
});
