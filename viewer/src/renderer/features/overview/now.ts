/** The time of day, for what is running: it advances only while somebody looks at a thing that runs. */
import { useEffect, useState } from "preact/hooks";

const STEP_MS = 5_000;

/** s since 1970. */
export function useNow(ticking: boolean): number {
  const [now, set] = useState(() => Date.now() / 1000);
  useEffect(() => {
    if (!ticking) return;
    const timer = setInterval(() => set(Date.now() / 1000), STEP_MS);
    return () => clearInterval(timer);
  }, [ticking]);
  return now;
}
