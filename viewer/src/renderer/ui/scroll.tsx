import type { ComponentChildren } from "preact";

/** What may be larger than its place: it scrolls by itself, and by the keyboard too (axe: scrollable-region-focusable). */
export function Scroll({
  label,
  class: name = "scroll",
  as: As = "section",
  children,
}: {
  label: string;
  class?: string;
  as?: "section" | "pre";
  children: ComponentChildren;
}) {
  return (
    <As
      class={name}
      tabIndex={0}
      {...(As === "section" ? { "aria-label": label } : { role: "region", "aria-label": label })}
    >
      {children}
    </As>
  );
}
