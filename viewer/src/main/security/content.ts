/** Electron's security checklist, 1, 7 and 12: nothing remote is loaded, and a strict policy says so to the page as well. */
import type { Session } from "electron";
import policy from "../../contract/policy.json";

export const POLICY = [...policy.directives, ...policy.onlyInHeader].join("; ");

/** Whether the page may load it: files of the app's own folder, and what it made itself. */
export const allowed = (url: string, folder: string): boolean =>
  url.startsWith(folder) || url.startsWith("data:") || url.startsWith("blob:") || url.startsWith("devtools:");

/** folder: file URL of the app's pages, with a slash at its end. */
export function guardContent(session: Session, folder: string): void {
  session.webRequest.onBeforeRequest((details, answer) => answer({ cancel: !allowed(details.url, folder) }));
  session.webRequest.onHeadersReceived((details, answer) =>
    answer({ responseHeaders: { ...details.responseHeaders, "Content-Security-Policy": [POLICY] } }),
  );
}
