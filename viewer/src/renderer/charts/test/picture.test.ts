import { expect, test } from "vitest";
import { titled, wrapped } from "../picture";

test("a picture is as high as the plot on the page and its title, which has all room above the legend", () => {
  const layout = { margin: { t: 8, b: 48 }, legend: { orientation: "h", y: 1.02, yanchor: "bottom" } } as const;
  // Plotly made 62 px of the 8, for two rows of a legend.
  const picture = titled("Loss <against> load", layout, 330, 62);
  expect(picture).toMatchObject({
    width: 1200,
    height: 380,
    margin: { t: 112, b: 48 },
    legend: layout.legend,
    title: { text: "Loss &lt;against&gt; load", yref: "container", y: 1, yanchor: "top" },
  });
});

test("a legend at the picture's upper end stays below the title", () => {
  const { legend } = titled("title", { legend: { yref: "container", y: 1, yanchor: "top" } as never }, 400, 76);
  expect(legend).toEqual({ yref: "container", yanchor: "top", y: 400 / 450 });
});

test("a long title takes several lines, with room for each", () => {
  expect(wrapped("one two three-four", 7)).toEqual(["one two", "three-four"]);
  const picture = titled("word ".repeat(58).trim(), {}, 330, 62);
  expect(picture.height).toBe(400);
  expect(picture.margin).toEqual({ t: 132 });
  expect((picture.title as { text: string }).text.split("<br>").map((line) => line.length)).toEqual([144, 144]);
});
