// Records in the bundle which sources it was built from, so that a test without Node can tell
// whether it is current: the SHA-256 of names and contents, in order.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const names = [
  ...["package.json", "package-lock.json", "tsconfig.json", "vite.config.js", "graphviz.mjs", "stamp.mjs"],
  ...readdirSync("src").map((name) => `src/${name}`),
].sort();
const hash = createHash("sha256");
for (const name of names) hash.update(name + "\n").update(readFileSync(name)).update("\n");
const notice = "// Contains Viz.js, Graphviz and Expat, whose licenses are in retrograd/inspect/static/LICENSES.md.\n";
const path = "../static/explorer.js";
const text = readFileSync(path, "utf8").replace(/\n?\/\/ sources [0-9a-f]+\n?$/, "").trimEnd();
writeFileSync(path, `${notice}${text}\n// sources ${hash.digest("hex")}\n`);
