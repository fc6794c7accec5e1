/** Whether an axis is to be logarithmic. */

export type AxisChoice = "auto" | "linear" | "log";

/** auto: where all values are above zero and span more than a decade. */
export function isLog(choice: AxisChoice, values: readonly number[]): boolean {
  if (choice !== "auto") return choice === "log" && values.some((value) => value > 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return values.length > 0 && low > 0 && high / low > 10;
}
