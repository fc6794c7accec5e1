/** Electron's security checklist, 17: a message counts only where it comes from our own page's main frame. */
import type { IpcMainInvokeEvent } from "electron";

export const trusted = (event: Pick<IpcMainInvokeEvent, "senderFrame">, page: string): boolean => {
  const frame = event.senderFrame;
  return frame !== null && frame !== undefined && frame.parent === null && frame.url.split("#")[0] === page;
};
