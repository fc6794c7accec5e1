/** Whether the page is dark now: the person's choice, else the system's. */
import { computed, effect, signal } from "@preact/signals";
import { settings } from "./state";

const query = window.matchMedia("(prefers-color-scheme: dark)");
const system = signal(query.matches);
query.addEventListener("change", () => {
  system.value = query.matches;
});

export const dark = computed(() =>
  settings.value.theme === "system" ? system.value : settings.value.theme === "dark",
);

effect(() => {
  document.documentElement.dataset.theme = dark.value ? "dark" : "light";
});
