// Fused kernels as groups: what is computed in one loop stands on one patch.

import { NODE_H, NODE_W, type Placed } from "./layout";
import type { Model } from "./model";

const AROUND = 11; // how far a patch reaches beyond its nodes

/** Nodes in their places and the edges between them, for each kernel of several nodes. */
export interface Group { kernel: number; ids: number[]; edges: number[] }

/** The colours of a patch: of its edge, and of its inside. */
export interface Ink { edge: string; inside: (g: Group) => string }

export function groups(model: Model, p: Placed, stubs: Uint8Array | boolean[]): Group[] {
  const found = new Map<number, Group>();
  for (let i = 0; i < p.x.length; i++) {
    const k = model.kernelOf[i];
    if (k < 0 || Number.isNaN(p.x[i])) continue;
    const known = found.get(k);
    if (known) known.ids.push(i); else found.set(k, { kernel: k, ids: [i], edges: [] });
  }
  for (let e = 0; e < p.from.length; e++) {
    const a = p.from[e], b = p.to[e];
    if (a < 0 || b < 0 || stubs[e] || p.kind[e] === 2) continue;
    const k = model.kernelOf[a];
    if (k >= 0 && k === model.kernelOf[b]) found.get(k)?.edges.push(e);
  }
  return [...found.values()].filter((g) => g.ids.length > 1);
}

export function paintGroups(
  pen: CanvasRenderingContext2D, all: Group[], p: Placed, [l, t, r, b]: number[],
  ink: Ink, curve: (e: number) => void, named: boolean,
): void {
  pen.setLineDash([]);
  for (const g of all) {
    if (!g.ids.some((i) => p.x[i] < r + 200 && p.x[i] + NODE_W > l - 200 && p.y[i] < b + 200 && p.y[i] + NODE_H > t - 200)) continue;
    for (const [colour, width] of [[ink.edge, 2 * AROUND + 3], [ink.inside(g), 2 * AROUND]] as const) {
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = width;
      pen.lineJoin = pen.lineCap = "round";
      pen.beginPath();
      for (const e of g.edges) curve(e);
      pen.stroke();
      pen.beginPath();
      for (const i of g.ids) pen.rect(p.x[i], p.y[i], NODE_W, NODE_H);
      pen.stroke();
      pen.fill();
    }
    if (!named) continue;
    const top = g.ids.reduce((x, i) => (p.y[i] < p.y[x] ? i : x));
    pen.fillStyle = ink.edge;
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillText(`kernel ${g.kernel}`, p.x[top], p.y[top] - AROUND - 4);
  }
}

/** The same as SVG elements; `curve` is the path of an edge. */
export function recordGroups(out: string[], all: Group[], p: Placed, ink: Ink, curve: (e: number) => string): void {
  for (const g of all) {
    const path = g.edges.map(curve).join("") + g.ids.map((i) => `M${p.x[i]} ${p.y[i]}h${NODE_W}v${NODE_H}h${-NODE_W}z`).join("");
    for (const [colour, width] of [[ink.edge, 2 * AROUND + 3], [ink.inside(g), 2 * AROUND]] as const) {
      out.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-linejoin="round" stroke-linecap="round"><title>kernel ${g.kernel}</title></path>`);
    }
  }
}
