/** Which viewer this is, and what it runs in: what a report of a fault has to name. */
import { useEffect, useState } from "preact/hooks";
import { bridge } from "../state/bridge";

export function About() {
  const [words, setWords] = useState("");
  useEffect(() => {
    void bridge.about().then((about) => {
      if (!about.ok) return;
      const { version, build, electron, chromium, sqlite } = about.value;
      setWords(`overlaylab ${version} (${build}), Electron ${electron}, Chromium ${chromium}, SQLite ${sqlite}`);
    });
  }, []);
  return <p class="about">{words}</p>;
}
