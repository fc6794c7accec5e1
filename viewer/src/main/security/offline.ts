/** The viewer asks no network: no name leads anywhere. Electron's spelling checker asks for a dictionary at each start, even where pages have none. */
import type { CommandLine } from "electron";

export function resolveNothing(commandLine: CommandLine): void {
  commandLine.appendSwitch("host-resolver-rules", "MAP * ~NOTFOUND");
}
