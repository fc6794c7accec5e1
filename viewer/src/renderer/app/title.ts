/** The window's title: the file that is shown, as window lists and screen readers tell it. */
import { effect } from "@preact/signals";
import { file } from "../state/state";

effect(() => {
  document.title = file.value ? `${file.value.name} – overlaylab` : "overlaylab";
});
