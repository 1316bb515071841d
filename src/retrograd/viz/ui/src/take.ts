// What can be taken away: pictures, the graph in other formats, a link.

import type { App } from "./app";
import { download } from "./dom";

const LARGEST = 8000; // pixels of a side of a picture

function name(app: App, ending: string): string {
  return `${(app.model.doc.name || "graph").replace(/[^\w.-]+/g, "-").slice(0, 60)}.${ending}`;
}

export function json(app: App): void {
  download(name(app, "json"), new Blob([JSON.stringify(app.model.doc)], { type: "application/json" }));
}

export async function png(app: App): Promise<void> {
  const p = app.view.placed;
  if (!p) return;
  const w = p.width + 40, h = p.height + 40, scale = Math.min(2, LARGEST / w, LARGEST / h);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(w * scale);
  canvas.height = Math.ceil(h * scale);
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--back");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.setTransform(scale, 0, 0, scale, 20 * scale, 20 * scale);
  app.view.paint(pen, [-20, -40, w, h], scale);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done));
  if (blob) download(name(app, "png"), blob);
}

/** XML text: characters that XML cannot hold are replaced. */
function xml(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff\ud800-\udfff]/g, "\ufffd")
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

export function svg(app: App): void {
  download(name(app, "svg"), new Blob([svgText(app)], { type: "image/svg+xml" }));
}

export function svgText(app: App): string {
  const p = app.view.placed, out: string[] = [];
  if (!p) return "";
  const style = getComputedStyle(document.documentElement), ink = (n: string) => style.getPropertyValue(n).trim();
  const w = Math.ceil(p.width + 40), h = Math.ceil(p.height + 60);
  out.push(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -40 ${w} ${h}" width="${w}" height="${h}" font-family="system-ui, sans-serif">`);
  out.push(`<rect x="-20" y="-40" width="${w}" height="${h}" fill="${ink("--back")}"/>`);
  app.view.record(out, { line: ink("--line"), faint: ink("--faint"), gradient: ink("--gradient"), text: ink("--text"), box: ink("--box") }, xml);
  out.push("</svg>");
  return out.join("\n");
}

/** The ONNX model that the page carries; otherwise why there is none, and how to write it. */
export function onnx(app: App, tell: (title: string, text: string) => void): void {
  const found = app.model.doc.onnx;
  if (found?.model) {
    const bytes = Uint8Array.from(atob(found.model), (c) => c.charCodeAt(0));
    download(name(app, "onnx"), new Blob([bytes], { type: "application/octet-stream" }));
  } else {
    tell("ONNX model", `${found?.refused ?? "This page was written without one"}. In Python: g.to_onnx("${name(app, "onnx")}")`);
  }
}

function quoted(text: string): string {
  return `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n").replace(/&/g, "&amp;").replace(/[\u0000-\u0009\u000b-\u001f]/g, "\ufffd")}"`;
}

export function dot(app: App): void {
  download(name(app, "dot"), new Blob([dotText(app)], { type: "text/vnd.graphviz" }));
}

export function dotText(app: App): string {
  const { model } = app, out = ["digraph {", `  label=${quoted(model.doc.name || "graph")};`, '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica];'];
  const walk = (id: number, indent: string): void => {
    const s = model.scopes[id];
    for (const x of s.nodes) out.push(`${indent}n${x} [label=${quoted(`${model.titles[x]}\n${model.nodes[x].type}`)}${model.second[x] ? ', color="#be185d"' : ""}];`);
    for (const c of s.children) {
      out.push(`${indent}subgraph cluster_${c} {`, `${indent}  label=${quoted(model.scopes[c].name)};`);
      walk(c, indent + "  ");
      out.push(`${indent}}`);
    }
  };
  walk(0, "  ");
  for (const r of model.nodes) for (const x of r.inputs) out.push(`  n${x} -> n${r.id}${model.nodes[x].shape ? ` [label=${quoted(model.nodes[x].shape)}]` : ""};`);
  return out.join("\n") + "\n}\n";
}

export function link(app: App): string {
  return location.href.split("#")[0] + (app.selected >= 0 ? `#node=${app.selected}` : "");
}
