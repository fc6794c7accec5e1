// Starts the packaged app PROGRAM on FILE, with nothing in its path, and prints what its window shows: {title, about}.
import { _electron } from "playwright-core";

const [program, file] = process.argv.slice(2);
const needed = ["HOME", "DISPLAY", "XAUTHORITY", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"];
const app = await _electron.launch({
  executablePath: program,
  args: [file],
  cwd: "/",
  env: { PATH: "", ...Object.fromEntries(needed.map((name) => [name, process.env[name]])) },
  chromiumSandbox: true,
});
const page = await app.firstWindow();
await page.waitForFunction(() => document.title.includes(" – "));
await page.getByRole("button", { name: "Keys and how to read the plots" }).click();
const about = await page.waitForSelector(".about:not(:empty)");
console.log(JSON.stringify({ title: await page.title(), about: await about.textContent() }));
await app.close();
