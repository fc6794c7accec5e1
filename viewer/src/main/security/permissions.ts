/** Electron's security checklist, 5: no permission is given. What is copied goes through main. */
import type { Session } from "electron";

export function guardPermissions(session: Session): void {
  session.setPermissionRequestHandler((_contents, _permission, answer) => answer(false));
  session.setPermissionCheckHandler(() => false);
  session.setDevicePermissionHandler(() => false);
  session.on("will-download", (event) => event.preventDefault());
}
