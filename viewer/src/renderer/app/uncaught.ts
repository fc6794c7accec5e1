/** Whatever nobody caught is said above the view; the page stays as it is. */
import { fail } from "../state/failures";
import { unexpected } from "../ui/boundary";

export function sayUncaught(): void {
  const say = (error: unknown) => fail("", unexpected("Something", error));
  window.addEventListener("error", (event) => {
    // Browsers report a delayed layout observer as an error; nothing is wrong then.
    if (event.error !== null && event.error !== undefined) say(event.error);
  });
  window.addEventListener("unhandledrejection", (event) => say(event.reason));
}
