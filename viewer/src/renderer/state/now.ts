/** The time of day, for what is running: it advances only while somebody looks at a thing that runs. */
import { useEffect, useState } from "preact/hooks";

/** s since 1970; it advances by steps of so many milliseconds. */
export function useNow(ticking: boolean, step = 5_000): number {
  const [now, set] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!ticking) return;
    set(Date.now() / 1000);
    const timer = setInterval(() => set(Date.now() / 1000), step);
    return () => clearInterval(timer);
  }, [ticking, step]);
  return now;
}
