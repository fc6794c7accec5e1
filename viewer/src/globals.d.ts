/** Set by build.mjs. */
declare const __VERSION__: string;
declare const __BUILD__: string;
