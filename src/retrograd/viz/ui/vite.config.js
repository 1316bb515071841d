// One script and one style sheet, which Python puts into the page. The worker is in the script.
import { defineConfig } from "vite";
import { graphviz } from "./graphviz.mjs";

export default defineConfig({
  publicDir: false,
  plugins: [graphviz()],
  build: {
    outDir: "../static",
    emptyOutDir: false,
    target: "es2022",
    lib: { entry: "src/main.ts", formats: ["iife"], name: "explorer", fileName: () => "explorer.js", cssFileName: "explorer" },
  },
  worker: { format: "iife", plugins: () => [graphviz()] },
});
