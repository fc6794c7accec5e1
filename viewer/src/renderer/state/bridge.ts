import type { Bridge } from "../../contract/channels";

declare global {
  interface Window {
    overlaylab: Bridge;
  }
}

/** Put there by preload. */
export const bridge: Bridge = window.overlaylab;
