// Graphviz as the package brings it is a megabyte of WebAssembly inside a string of a script. The page
// takes it compressed, once, as text that no encoding of pages spoils; the program around it, which
// is in the worker, is handed the bytes before it starts.
import { gzipSync } from "node:zlib";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const BINARY = "virtual:graphviz";
const OPENING = "function findWasmBinary(){return binaryDecode('", CLOSING = "')}function getBinarySync";

/** Where the literal of the binary begins and ends in the package's script. */
function literal(code) {
  const start = code.indexOf(OPENING) + OPENING.length, end = code.indexOf(CLOSING, start);
  if (start < OPENING.length || end < 0) throw new Error("@viz-js/viz is not made as it was: see graphviz.mjs");
  return [start, end];
}

function packed() {
  const code = readFileSync(createRequire(import.meta.url).resolve("@viz-js/viz").replace("viz.cjs", "viz.js"), "utf8");
  const text = new Function(`return '${code.slice(...literal(code))}'`)();
  const bytes = Uint8Array.from(text, (c) => (~c.charCodeAt(0) >> 8) & c.charCodeAt(0));
  WebAssembly.validate(bytes) || (() => { throw new Error("the binary was not read as it is"); })();
  return gzipSync(bytes, { level: 9 }).toString("base64");
}

export const graphviz = () => ({
  name: "graphviz",
  resolveId: (id) => (id === BINARY ? `\0${BINARY}` : undefined),
  load: (id) => (id === `\0${BINARY}` ? `export default ${JSON.stringify(packed())};` : undefined),
  transform: (code, id) => {
    if (!/@viz-js\/viz\/dist\/viz\.js/.test(id)) return undefined;
    const [start, end] = literal(code);
    const body = code.slice(0, start - "binaryDecode('".length) + "supplied" + code.slice(end + 2);
    return `${body.replace(/^\/\*![^]*?\*\//, "")}\nlet supplied;\nexport function supply(bytes) { supplied = bytes; }\n`;
  },
});
