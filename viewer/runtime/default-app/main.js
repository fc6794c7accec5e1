// What the fallback runtime starts when it is given the path of an app: `electron [-r MODULE] FOLDER [ARGUMENT…]`.
// The runtime's own program for this was dropped with the app that came along with it.
const { app } = require("electron");
const fs = require("node:fs");
const path = require("node:path");

const words = process.argv.slice(1);
const required = [];
let target = null;
while (target === null && words.length > 0) {
  const word = words.shift();
  if (word === "-v" || word === "--version") {
    process.stdout.write(`v${process.versions.electron}\n`);
    process.exit(0);
  } else if (word === "-r" || word === "--require") {
    required.push(words.shift());
  } else if (!word.startsWith("-")) {
    target = path.resolve(word);
  } // else: a switch of Chromium's
}
if (target === null) {
  process.stderr.write("electron: name the folder of an app\n");
  process.exit(2);
}

// A driver hooks in here, before the app has asked for anything.
for (const name of required) require(path.resolve(name));

const about = path.join(target, "package.json");
if (fs.existsSync(about)) {
  const { name, productName, version } = JSON.parse(fs.readFileSync(about, "utf8"));
  if (productName || name) app.setName(productName || name);
  if (version) app.setVersion(version);
  app.setAppPath(target);
} else {
  app.setAppPath(path.dirname(target));
}
Object.defineProperty(process, "defaultApp", { value: true, enumerable: true });
// Not through `require`: the app shall be the main module, as it is when it is packaged.
require("node:module")._load(target, module, true);
