/** The menu, which is also where keys are told. What concerns the page is sent to it as a command. */
import { Menu, type MenuItemConstructorOptions } from "electron";
import type { Command, EventName, Events } from "../contract/channels";
import { VIEWS } from "../contract/views";

type Tell = <Name extends EventName>(name: Name, told: Events[Name]) => void;

export function setMenu(tell: Tell): void {
  const command = (label: string, accelerator: string | undefined, told: Command): MenuItemConstructorOptions => ({
    label,
    ...(accelerator ? { accelerator } : {}),
    click: () => tell("command", told),
  });
  const template: MenuItemConstructorOptions[] = [
    {
      label: "File",
      submenu: [
        command("Open…", "CmdOrCtrl+O", { name: "open" }),
        command("Export all views as HTML…", "CmdOrCtrl+E", { name: "export-all" }),
        { type: "separator" },
        { role: "quit" },
      ],
    },
    { label: "Edit", submenu: [{ role: "copy" }, { role: "selectAll" }] },
    {
      label: "View",
      submenu: [
        ...VIEWS.map(({ id, title }, at) =>
          command(title, at < 9 ? `CmdOrCtrl+${at + 1}` : undefined, { name: "view", view: id }),
        ),
        { type: "separator" },
        command("Theme of the system", undefined, { name: "theme", theme: "system" }),
        command("Light", undefined, { name: "theme", theme: "light" }),
        command("Dark", undefined, { name: "theme", theme: "dark" }),
        { type: "separator" },
        { role: "zoomIn" },
        { role: "zoomOut" },
        { role: "resetZoom" },
        { role: "togglefullscreen" },
        { role: "toggleDevTools" },
      ],
    },
    { label: "Help", submenu: [command("Keys and units", "F1", { name: "help" })] },
  ];
  Menu.setApplicationMenu(Menu.buildFromTemplate(template));
}
