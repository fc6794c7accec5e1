/** Texts of a database as they may stand on the page. */
import { plainText } from "../../contract/text";

/** No character that is invisible or turns the line round, never longer than this. */
export const clean = (text: string, most = 80): string => plainText(text, most);

export const metricWords = (metric: string): string => metric.replace(/_/g, " ");
