/** An element of the page as HTML that nobody can press: plots as pictures, choices as words, long texts whole. */
import { plotly } from "../ui/plotly";
import { wholeText } from "../ui/text";

/** What the element has of a kind, each with its copy: a clone knows neither what is chosen nor what was cut. */
const pairs = <Kind extends HTMLElement>(element: HTMLElement, copy: HTMLElement, which: string): [Kind, Kind][] => {
  const copies = copy.querySelectorAll<Kind>(which);
  return [...element.querySelectorAll<Kind>(which)].flatMap((each, at): [Kind, Kind][] => {
    const found = copies[at];
    return found ? [[each, found]] : [];
  });
};

export async function snapshot(element: HTMLElement): Promise<string> {
  const copy = element.cloneNode(true) as HTMLElement;
  const [plots, selects, inputs, texts] = [
    pairs<HTMLElement>(element, copy, ".plot[data-drawn]"),
    pairs<HTMLSelectElement>(element, copy, "select"),
    pairs<HTMLInputElement>(element, copy, "input"),
    pairs<HTMLElement>(element, copy, "bdi"),
  ];
  for (const [plot, place] of plots) place.replaceWith(await picture(plot));
  for (const [select, place] of selects) place.replaceWith(select.selectedOptions[0]?.textContent ?? "");
  for (const [input, place] of inputs) say(input, place);
  for (const [text, place] of texts) place.textContent = wholeText(text) ?? place.textContent;
  for (const choice of copy.querySelectorAll("fieldset.switch")) choice.replaceWith(pressed(choice));
  for (const button of copy.querySelectorAll("button")) button.replaceWith(...kept(button));
  for (const control of copy.querySelectorAll("progress")) control.remove();
  return copy.innerHTML;
}

async function picture(plot: HTMLElement): Promise<HTMLElement> {
  const image = document.createElement("img");
  image.src = await (await plotly()).toImage(plot as never, {
    format: "svg",
    width: plot.clientWidth || 1000,
    height: plot.clientHeight || 420,
  });
  image.alt = plot.getAttribute("aria-label") ?? "";
  return image;
}

/** A box that is ticked, or what was searched for; where a slider stands is said beside it. */
function say(input: HTMLInputElement, place: HTMLElement): void {
  if (input.type === "range") place.remove();
  else if (input.type === "checkbox") {
    place.closest("label")?.append(input.checked ? ": yes" : ": no");
    place.remove();
  } else place.replaceWith(input.value ? `“${input.value}”` : "anything");
}

function pressed(choice: Element): HTMLElement {
  const words = document.createElement("p");
  const chosen = choice.querySelector('button[aria-pressed="true"]')?.textContent ?? "";
  words.textContent = `${choice.getAttribute("aria-label")}: ${chosen}`;
  return words;
}

/** What a button leaves: its words, where they are a value, a heading or a line of a list, and not what it would do. */
function kept(button: HTMLButtonElement): Node[] {
  const isValue = button.matches(".link:not([aria-expanded]), .sort");
  if (!isValue && !button.closest("li")) return [];
  if (isValue || button.getAttribute("aria-pressed") !== "true") return [...button.childNodes];
  const chosen = document.createElement("strong");
  chosen.append(...button.childNodes);
  return [chosen];
}
