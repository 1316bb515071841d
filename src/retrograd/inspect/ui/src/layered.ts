// The layered engine for scopes of a comfortable size; see `layout.ts` for what lies beyond it.

import { Graph, layout } from "@dagrejs/dagre";

export interface Box { x: Float32Array; y: Float32Array; w: number; h: number }

const MEMBERS = 150, TIES = 400; // up to which it answers within a blink: a tenth of a second
const ABREAST = 15; // beyond which rows are wrapped, which the engine does not do

/** Whether a scope is for the engine, which must not depend on what is open in it. */
export function comfortable(layers: number[][], below: number[][]): boolean {
  const ties = below.reduce((sum, b) => sum + b.length, 0);
  return ties > 0 && ties <= TIES && below.length <= MEMBERS && layers.every((l) => l.length <= ABREAST);
}

/** Places of the members of a scope, left and top. */
export function layered(size: [number, number][], below: number[][], gapX: number, gapY: number): Box {
  const n = size.length, g = new Graph();
  g.setGraph({ rankdir: "TB", nodesep: gapX, edgesep: gapX / 2, ranksep: gapY });
  g.setDefaultEdgeLabel(() => ({}));
  size.forEach(([width, height], i) => g.setNode(String(i), { width, height }));
  below.forEach((ends, a) => ends.forEach((b) => g.setEdge(String(a), String(b))));
  layout(g);
  const x = new Float32Array(n), y = new Float32Array(n);
  let least = Infinity, most = -Infinity, top = Infinity, bottom = -Infinity;
  size.forEach(([w, h], i) => {
    const at = g.node(String(i)) as unknown as { x: number; y: number };
    x[i] = at.x - w / 2;
    y[i] = at.y - h / 2;
    least = Math.min(least, x[i]); most = Math.max(most, x[i] + w);
    top = Math.min(top, y[i]); bottom = Math.max(bottom, y[i] + h);
  });
  for (let i = 0; i < n; i++) { x[i] -= least; y[i] -= top; }
  return { x, y, w: most - least, h: bottom - top };
}
