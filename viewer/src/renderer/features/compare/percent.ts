import { number } from "../../lib/units";

/** A share of the database as people say it: 2 %. */
export const percent = (share: number): string => `${number(share * 100)} %`;
