import { bridge } from "./bridge";
import { sayFailed } from "./failures";

export async function copy(text: string): Promise<void> {
  sayFailed(await bridge.copyText(text));
}
