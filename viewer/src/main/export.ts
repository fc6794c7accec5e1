/** Writing what the page made (a plot, a table, the whole as HTML) to where the person says. */
import { type BrowserWindow, dialog } from "electron";
import { type Answer, problem, value } from "../contract/answers";
import type { ExportedFile } from "../contract/channels";
import { writeWhole } from "./whole-file";

const NAMES = { svg: "SVG image", png: "PNG image", csv: "CSV table", html: "HTML page" } as const;

export async function saveExport(window: BrowserWindow, file: ExportedFile): Promise<Answer<string | null>> {
  if (!(file.kind in NAMES)) return problem("refused", "Unknown kind of export.", "");
  const { canceled, filePath } = await dialog.showSaveDialog(window, {
    defaultPath: file.suggestedName,
    filters: [{ name: NAMES[file.kind], extensions: [file.kind] }],
  });
  if (canceled || !filePath) return value(null);
  try {
    await writeWhole(filePath, file.kind === "png" ? Buffer.from(file.content, "base64") : file.content);
    return value(filePath);
  } catch (error) {
    return problem(
      "unreadable",
      `${filePath} could not be written.`,
      "Choose another folder, or make room on the disk.",
      String(error),
    );
  }
}
