import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { allowed } from "../security/content";
import { CHECKS } from "../security/parameters";
import { trusted } from "../security/senders";
import { ToldPaths } from "../security/told";

const PAGE = pathToFileURL("/app/dist/index.html").href;

test("only our own page's main frame is heard", () => {
  const from = (url: string, parent: object | null = null) => trusted({ senderFrame: { url, parent } as never }, PAGE);
  expect(from(PAGE)).toBe(true);
  expect(from(`${PAGE}#compare`)).toBe(true);
  expect(from(PAGE, {})).toBe(false);
  for (const url of ["about:blank", "https://example.org/", "file:///app/dist/other.html", `${PAGE}.html`, ""])
    expect(from(url)).toBe(false);
  expect(trusted({ senderFrame: null }, PAGE)).toBe(false);
});

test("only the app's own folder is loaded from", () => {
  const folder = PAGE.replace("index.html", "");
  expect(["renderer.js", "plotly.js"].every((name) => allowed(folder + name, folder))).toBe(true);
  for (const url of [
    "file:///etc/passwd",
    "file:///app/dist-of-another/x.js",
    "http://127.0.0.1/",
    "https://example.org/",
    "ws://127.0.0.1/",
    "filesystem:x",
    "chrome://gpu",
  ]) {
    expect([url, allowed(url, folder)]).toEqual([url, false]);
  }
  expect(allowed(new URL("../main.js", folder).href, folder)).toBe(false);
});

test("paths that main told of are known, however they are written", () => {
  const told = new ToldPaths();
  expect(told.tell([{ path: "/a/b.sqlite" }])).toEqual([{ path: "/a/b.sqlite" }]);
  expect(["/a/b.sqlite", "/a/../a/b.sqlite"].map((path) => told.knows(path))).toEqual([true, true]);
  expect(["/a/c.sqlite", "/a", ""].map((path) => told.knows(path))).toEqual([false, false, false]);
});

test("every channel takes what its contract says", () => {
  const good: { [Name in keyof typeof CHECKS]: unknown[] } = {
    "file:open": [{}, { path: "/a" }],
    "file:drop": [{ path: "/a" }],
    "file:close": [{ id: "f1" }],
    "file:reopen": [{ id: "f12" }],
    "file:list": [null],
    "file:recent": [null],
    "file:demo": [null],
    query: [
      { file: "f1", name: "runs", parameters: {} },
      { file: "f1", name: "trial-summary", parameters: { run_id: "a", trial: 1, metric: null } },
    ],
    "settings:read": [null],
    "settings:write": [{}, { theme: "dark" }, { filters: { compare: { run: "a" } } }],
    "export:save": [{ kind: "csv", suggestedName: "goodput (1).csv", content: "a" }],
    "text:copy": [{ text: "" }],
    about: [null],
  };
  for (const [name, all] of Object.entries(good)) {
    for (const given of all)
      expect([name, given, CHECKS[name as keyof typeof CHECKS](given)]).toEqual([name, given, true]);
  }
});

test("and nothing else: not of another type, not more, not inherited", () => {
  const odd = [
    undefined,
    0,
    "",
    "x",
    true,
    [],
    [null],
    { more: 1 },
    { path: 5 },
    { id: 5 },
    { id: "../f1" },
    { text: null },
    Object.create({ path: "/a", id: "f1", text: "a" }),
    { file: "f1", name: "runs" },
    new Map(),
  ];
  const takesNothing = ["file:list", "file:recent", "file:demo", "settings:read", "about"];
  for (const [name, check] of Object.entries(CHECKS)) {
    for (const given of odd) {
      if (given === undefined && takesNothing.includes(name)) continue;
      // Nothing to open is a dialog; nothing to change is a change; names of settings are checked where they are kept.
      const empty = typeof given === "object" && !Array.isArray(given) && Object.keys(given).length === 0;
      if (
        (name === "file:open" && empty) ||
        (name === "settings:write" && typeof given === "object" && !Array.isArray(given))
      )
        continue;
      expect([name, given, check(given)]).toEqual([name, given, false]);
    }
  }
});
