// The layered engine, Graphviz's dot, for scopes of a comfortable size; see `layout.ts` for what lies
// beyond it. Runs in the worker only.

import { instance, supply, type Viz } from "@viz-js/viz";
import type { Route } from "./routes";

declare module "@viz-js/viz" {
  export function supply(bytes: Uint8Array): void; // put there by graphviz.mjs
}

export interface Box {
  x: Float32Array; y: Float32Array; w: number; h: number;
  routes?: [from: number, to: number, route: Route][]; // of edges that pass by other members
} // from -1: of an edge that comes from outside

/** A member of a scope: its size, and how far from its left edges begin and end. */
export type Member = [width: number, height: number, port: number];

/** Places of the members of a scope, left and top; undefined where the engine cannot tell. Edges from
 *  outside, to those that are `entered`, find a way in from above. */
export type Layered = (size: Member[], below: number[][], entered: number[], gapX: number, gapY: number) => Box | undefined;

const INCH = 72; // dot is told of inches, and computes in whole points
const MEMBERS = 300, TIES = 500; // up to which it answers within a blink: a tenth of a second
const ABREAST = 15; // beyond which rows are wrapped, which the engine does not do

/** Whether a scope is for the engine, which must not depend on what is open in it. */
export function comfortable(layers: number[][], below: number[][]): boolean {
  const ties = below.reduce((sum, b) => sum + b.length, 0);
  return ties > 0 && ties <= TIES && below.length <= MEMBERS && layers.every((l) => l.length <= ABREAST);
}

/** The engine, from its compressed binary. */
export async function load(packed: Blob): Promise<Layered> {
  const plain = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  supply(new Uint8Array(await new Response(plain).arrayBuffer()));
  const viz = await instance();
  return (size, below, entered, gapX, gapY) => {
    const text = [`digraph{graph[splines=true,nslimit=2,nodesep=${gapX / INCH},ranksep=${gapY / INCH}];node[shape=plain];edge[arrowhead=none]`];
    size.forEach((member, i) => text.push(`${i}[label=<${table(member)}>]`));
    below.forEach((ends, a) => ends.forEach((b) => text.push(`${a}:p->${b}:p`)));
    if (entered.length) text.push(`{rank=min;node[shape=point,width=0.02];${entered.map((b) => `e${b}`).join(";")}}`);
    for (const b of entered) text.push(`e${b}->${b}:p`);
    try {
      return read(viz, text.join(";") + "}", size);
    } catch {
      return undefined; // it may run out of memory
    }
  };
}

/** A member as a table of two cells, the first of which has the port in its middle. */
function table([w, h, port]: Member): string {
  const cell = (width: number, name: string) =>
    (width > 0.5 ? `<td fixedsize="true" width="${Math.round(width)}" height="${Math.round(h)}"${name}></td>` : "");
  const cells = cell(Math.min(w, 2 * port), ' port="p"') + cell(w - 2 * port, "");
  return `<table border="0" cellborder="0" cellspacing="0" cellpadding="0"><tr>${cells}</tr></table>`;
}

/** Inches as they are printed, with five digits, in halves of points: rows are level. */
const points = (inches: string): number => Math.round(2 * INCH * Number(inches)) / 2;

function read(viz: Viz, text: string, size: Member[]): Box | undefined {
  const answer = viz.render(text, { format: "plain", yInvert: true });
  if (answer.status !== "success") return undefined;
  const x = new Float32Array(size.length), y = new Float32Array(size.length);
  const routes: NonNullable<Box["routes"]> = [];
  let least = Infinity, most = -Infinity, top = Infinity, bottom = -Infinity, count = 0;
  for (const line of answer.output.split("\n")) {
    const words = line.split(" ");
    if (words[0] === "node" && words[1][0] !== "e") {
      const i = Number(words[1]), [w, h] = size[i];
      x[i] = points(words[2]) - w / 2;
      y[i] = points(words[3]) - h / 2;
      least = Math.min(least, x[i]); most = Math.max(most, x[i] + w);
      top = Math.min(top, y[i]); bottom = Math.max(bottom, y[i] + h);
      count++;
    } else if (words[0] === "edge") {
      const outside = words[1][0] === "e", way = words.slice(4, 4 + 2 * Number(words[3]));
      if (!outside && way.length <= 8) continue; // one curve
      routes.push([outside ? -1 : Number(words[1]), Number(words[2]), Float32Array.from(way, points)]);
    }
  }
  if (count !== size.length) return undefined;
  for (let i = 0; i < x.length; i++) { x[i] -= least; y[i] -= top; }
  for (const [, , way] of routes) for (let k = 0; k < way.length; k += 2) { way[k] -= least; way[k + 1] -= top; }
  return { x, y, w: most - least, h: bottom - top, routes };
}
