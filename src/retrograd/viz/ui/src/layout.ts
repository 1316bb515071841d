// Where everything stands. Each scope is laid out by itself: the order of its members does not depend
// on what is open, so that nothing changes places when a scope opens; only the coordinates are
// computed anew, from the sizes. Runs in a worker.

import type { Route } from "./routes";
import { comfortable, type Box, type Layered, type Member } from "./layered";

export const NODE_W = 150, NODE_H = 42, SCOPE_W = 210, SCOPE_H = 60;
export const SCOPE_PORT = 0.3; // where of its width a scope's forward edges begin and end
export const BESIDE = 72; // between a forward node and the gradient nodes beside it
const GAP_X = 22, GAP_Y = 34, SMALL_GAP = 18, PAD = 18, TITLE = 26, WIDEST = 2600, TALLEST = 20000, LANE_GAP = 110;
const ENTRIES = 6; // edges from outside that a scope has ways for

export interface Structure {
  count: number; scopeOf: Int32Array; unit: Int32Array; folded: Uint8Array; second: Uint8Array;
  inputs: Int32Array; starts: Int32Array; // inputs of node i: inputs[starts[i] .. starts[i + 1]]
  parents: Int32Array; // of scopes; -1 of the outermost, -2 of those that are not there
  backward: Int32Array; // gradient nodes in each scope
  lanes?: { scopes: number[]; lane: Uint8Array }; // of a training step, and of each of its nodes
}

export interface Placed {
  x: Float32Array; y: Float32Array; // of nodes; NaN where hidden
  sx: Float32Array; sy: Float32Array; sw: Float32Array; sh: Float32Array; // of scopes; NaN where hidden
  from: Int32Array; to: Int32Array; // edges: ids of nodes, or ~ids of closed scopes
  kind: Uint8Array; // 0 forward, 1 between gradients, 2 from forward to gradient
  slot: Uint8Array; many: Int32Array; first: Int32Array; // slot among inputs, edges drawn as this one, the source of one of them
  routes: Map<number, Route>; // of edges, by number, that go around boxes
  entries: Map<number, Route>; // of edges from outside of a scope, from where they enter it
  stands: Int32Array; // what stands for each node
  width: number; height: number;
}

type Size = readonly [width: number, height: number, ...rest: number[]];
interface Order { members: number[]; layers: number[][]; above: number[][]; below: number[][]; entered: number[] }
interface Cluster { dx: Float32Array; dy: Float32Array; ids: number[]; w: number; h: number }

export class Layouter {
  engine: Layered | undefined; // which is there in the worker
  private readonly s: Structure;
  private readonly children: number[][];
  private readonly roots: number[][]; // units directly inside each scope
  private readonly around: number[][]; // gradient nodes beside each unit
  private readonly ties: [number, number][][]; // edges between members of each scope
  private readonly entered: Set<number>[]; // members of each scope that edges from outside go to
  private readonly orders = new Map<number, Order>();
  private readonly clusters = new Map<number, Cluster>();
  private readonly boxes = new Map<string, Box>();
  private readonly rank: Int32Array;
  private readonly mirrored: Uint8Array; // scopes of the backward lane, which flows upwards

  constructor(s: Structure) {
    this.s = s;
    const scopes = s.parents.length;
    this.children = Array.from({ length: scopes }, () => []);
    s.parents.forEach((p, i) => { if (p >= 0) this.children[p].push(i); });
    this.roots = Array.from({ length: scopes }, () => []);
    this.around = Array.from({ length: s.count }, () => []);
    for (let i = 0; i < s.count; i++) {
      if (s.folded[i]) continue;
      if (s.unit[i] === i) this.roots[s.scopeOf[i]].push(i);
      else this.around[s.unit[i]].push(i);
    }
    this.entered = Array.from({ length: scopes }, () => new Set());
    this.mirrored = new Uint8Array(scopes);
    const up = s.lanes?.scopes[1] ?? -1;
    for (let i = 0; i < scopes; i++) for (let p = i; p > 0 && up > 0; p = s.parents[p]) if (p === up) this.mirrored[i] = 1;
    this.rank = this.ranks();
    this.ties = this.lift();
  }

  /** The longest path to each node. Also right where ids are not in topological order. */
  private ranks(): Int32Array {
    const { count, inputs, starts } = this.s;
    const waiting = new Int32Array(count), rank = new Int32Array(count);
    const users: number[][] = Array.from({ length: count }, () => []);
    for (let i = 0; i < count; i++) {
      waiting[i] = starts[i + 1] - starts[i];
      for (let k = starts[i]; k < starts[i + 1]; k++) users[inputs[k]].push(i);
    }
    const ready: number[] = [];
    for (let i = 0; i < count; i++) if (!waiting[i]) ready.push(i);
    for (let at = 0; at < ready.length; at++) {
      const i = ready[at];
      for (const u of users[i]) {
        rank[u] = Math.max(rank[u], rank[i] + 1);
        if (--waiting[u] === 0) ready.push(u);
      }
    }
    return rank;
  }

  /** Each forward edge belongs to the innermost scope that holds both ends, between its members.
   *  Members are units, by the id of their node, or scopes, as ~id. */
  private lift(): [number, number][][] {
    const { count, inputs, starts, unit, scopeOf, parents, second, folded } = this.s;
    const depth = new Int32Array(parents.length);
    const deep = (i: number): number => { let d = 0; for (let p = parents[i]; p >= 0; p = parents[p]) d++; return d; };
    for (let i = 0; i < parents.length; i++) depth[i] = deep(i);
    const ties: [number, number][][] = Array.from({ length: parents.length }, () => []);
    const seen = new Set<number>();
    const base = count + parents.length;
    for (let i = 0; i < count; i++) {
      if (folded[i] || (second[i] && unit[i] !== i)) continue;
      for (let k = starts[i]; k < starts[i + 1]; k++) {
        const j = inputs[k];
        if (folded[j]) continue;
        let a = scopeOf[j], b = scopeOf[i], u = unit[j], v = unit[i];
        if (u === v) continue;
        while (a !== b) {
          if (depth[a] >= depth[b]) { u = ~a; a = parents[a]; } else { this.entered[b].add(v); v = ~b; b = parents[b]; }
        }
        if (u === v) continue;
        const key = (u < 0 ? count + ~u : u) * base + (v < 0 ? count + ~v : v);
        if (seen.has(key)) continue;
        seen.add(key);
        ties[a].push([u, v]);
      }
    }
    return ties;
  }

  private order(scope: number): Order {
    const known = this.orders.get(scope);
    if (known) return known;
    const members = [...this.roots[scope], ...this.children[scope].map((c) => ~c)];
    const index = new Map(members.map((m, i) => [m, i]));
    const above: number[][] = members.map(() => []), below: number[][] = members.map(() => []);
    for (const [u, v] of this.ties[scope]) {
      const a = index.get(u), b = index.get(v);
      if (a === undefined || b === undefined) continue;
      above[b].push(a);
      below[a].push(b);
    }
    const key = members.map((m) => this.firstRank(m));
    const layers = arrange(layering(above, below, key), above, below, key);
    const entered = [...this.entered[scope]].map((m) => index.get(m) ?? -1).filter((i) => i >= 0 && above[i].length > 0);
    const found = { members, layers, above, below, entered: entered.length > ENTRIES ? [] : entered };
    this.orders.set(scope, found);
    return found;
  }

  /** By the layered engine where it is comfortable. What is the same, such as the layers of a
   *  network, is placed once. */
  private arranged(o: Order, sizes: Member[]): Box {
    const key = `${sizes.join(";")}|${o.below.join(";")}|${o.entered.join()}`;
    const known = this.boxes.get(key);
    if (known) return known;
    const found = (comfortable(o.layers, o.below) && this.engine?.(sizes, o.below, o.entered, GAP_X, GAP_Y))
      || coordinates(o.layers, o.above, o.below, sizes, GAP_X, GAP_Y, WIDEST);
    this.boxes.set(key, found);
    return found;
  }

  private firstRank(member: number): number {
    if (member >= 0) return this.rank[member];
    let least = Infinity;
    const todo = [~member];
    while (todo.length) {
      const s = todo.pop() as number;
      for (const x of this.roots[s]) if (this.s.starts[x + 1] > this.s.starts[x]) least = Math.min(least, this.rank[x]);
      todo.push(...this.children[s]);
    }
    return Number.isFinite(least) ? least : 0;
  }

  /** The gradient nodes beside a forward node, flowing upwards. */
  private cluster(root: number): Cluster {
    const known = this.clusters.get(root);
    if (known) return known;
    const ids = this.around[root], { inputs, starts } = this.s;
    const index = new Map(ids.map((x, i) => [x, i]));
    const above: number[][] = ids.map(() => []), below: number[][] = ids.map(() => []);
    ids.forEach((x, i) => {
      for (let k = starts[x]; k < starts[x + 1]; k++) {
        const j = index.get(inputs[k]);
        if (j !== undefined && j !== i) { above[i].push(j); below[j].push(i); }
      }
    });
    const key = ids.map((x) => this.rank[x]);
    const layers = arrange(layering(above, below, key, false), above, below, key);
    const size = ids.map(() => [NODE_W, NODE_H] as Size);
    const placed = coordinates(layers, above, below, size, SMALL_GAP, SMALL_GAP, 4 * (NODE_W + SMALL_GAP));
    for (let i = 0; i < ids.length; i++) placed.y[i] = placed.h - placed.y[i] - NODE_H; // mirrored
    const found = { dx: placed.x, dy: placed.y, ids, w: placed.w, h: placed.h };
    this.clusters.set(root, found);
    return found;
  }

  private unitSize(root: number, beside: boolean): [number, number] {
    if (!beside || this.around[root].length === 0) return [NODE_W, NODE_H];
    const c = this.cluster(root);
    return [NODE_W + BESIDE + c.w, Math.max(NODE_H, c.h)];
  }

  place(open: Uint8Array, beside: boolean): Placed {
    const { count, parents } = this.s, scopes = parents.length;
    const size: Size[] = Array.from({ length: scopes }, () => [SCOPE_W, SCOPE_H]);
    const inner = new Map<number, Box>();
    const shown: number[] = [];
    const walk = [0];
    while (walk.length) { // open scopes, outer before inner
      const s = walk.pop() as number;
      shown.push(s);
      for (const c of this.children[s]) if (open[c]) walk.push(c);
    }
    for (const s of shown.slice().reverse()) {
      const o = this.order(s);
      const sizes = o.members.map((m): Member => (m >= 0 ? [...this.unitSize(m, beside), NODE_W / 2] : [size[~m][0], size[~m][1], SCOPE_PORT * size[~m][0]]));
      const placed = s === 0 && this.s.lanes ? abreast(sizes) : this.arranged(o, sizes);
      inner.set(s, this.mirrored[s] ? upsideDown(placed, sizes) : placed);
      size[s] = [placed.w + 2 * PAD, placed.h + 2 * PAD + TITLE];
    }
    const made = () => new Float32Array(scopes).fill(NaN);
    const x = new Float32Array(count).fill(NaN), y = new Float32Array(count).fill(NaN);
    const sx = made(), sy = made(), sw = made(), sh = made();
    sx[0] = 0; sy[0] = -TITLE;
    for (const s of shown) {
      const o = this.order(s), p = inner.get(s) as Box;
      sw[s] = size[s][0]; sh[s] = size[s][1];
      o.members.forEach((m, i) => {
        const left = sx[s] + PAD + p.x[i], top = sy[s] + PAD + TITLE + p.y[i];
        if (m < 0) { sx[~m] = left; sy[~m] = top; sw[~m] = size[~m][0]; sh[~m] = size[~m][1]; return; }
        const h = this.unitSize(m, beside)[1];
        x[m] = left;
        y[m] = top + (h - NODE_H) / 2;
        if (!beside || !this.around[m].length) return;
        const c = this.cluster(m), down = top + (h - c.h) / 2;
        c.ids.forEach((id, k) => { x[id] = left + NODE_W + BESIDE + c.dx[k]; y[id] = down + c.dy[k]; });
      });
    }
    const ways = new Map<number, Route>(), inwards = new Map<number, Route>();
    for (const s of shown) {
      const { members } = this.order(s), left = sx[s] + PAD, top = sy[s] + PAD + TITLE;
      for (const [a, b, way] of inner.get(s)?.routes ?? []) {
        const placed = way.map((v, k) => v + (k % 2 ? top : left));
        if (a < 0) inwards.set(members[b], placed); else ways.set(this.between(members[a], members[b]), placed);
      }
    }
    const stands = this.stands(open, beside);
    return { x, y, sx, sy, sw, sh, ...this.edges(stands, ways, inwards, beside), stands, width: size[0][0], height: size[0][1] - TITLE };
  }

  /** What is seen in the place of each node: itself, its forward node, or a closed scope. */
  private stands(open: Uint8Array, beside: boolean): Int32Array {
    const { count, parents, scopeOf, unit, folded } = this.s;
    const closed = new Int32Array(parents.length).fill(-1);
    for (let s = 0; s < parents.length; s++) {
      for (let p = s; p > 0; p = parents[p]) if (!open[p]) closed[s] = p;
    }
    const stands = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      const c = closed[scopeOf[i]];
      stands[i] = c > 0 ? ~c : folded[i] ? -1 : beside ? i : unit[i];
    }
    return stands;
  }

  /** A number for two things that are seen, nodes or scopes as ~id. */
  private between(u: number, v: number): number {
    const { count, parents } = this.s;
    return (u < 0 ? count + ~u : u) * (count + parents.length) + (v < 0 ? count + ~v : v);
  }

  /** Whether something that is seen lies in the scope of another. */
  private beside(u: number, v: number): boolean {
    const { scopeOf, parents } = this.s, home = v >= 0 ? scopeOf[v] : parents[~v];
    for (let s = u >= 0 ? scopeOf[u] : parents[~u]; s >= 0; s = parents[s]) if (s === home) return true;
    return false;
  }

  private edges(stands: Int32Array, ways: Map<number, Route>, inwards: Map<number, Route>, beside: boolean): Pick<Placed, "from" | "to" | "kind" | "slot" | "many" | "first" | "routes" | "entries"> {
    const { count, inputs, starts, second, folded, lanes } = this.s;
    const known = new Map<number, number>(), routes = new Map<number, Route>(), entries = new Map<number, Route>();
    const from: number[] = [], to: number[] = [], kind: number[] = [], slot: number[] = [], many: number[] = [], first: number[] = [];
    for (let i = 0; i < count; i++) {
      if (folded[i]) continue;
      const v = stands[i];
      for (let k = starts[i]; k < starts[i + 1]; k++) {
        const j = inputs[k];
        if (folded[j]) continue;
        const u = stands[j];
        if (u === v) continue;
        if (!beside && !lanes && second[i] && u >= 0 && v >= 0) continue; // folded: edges of values tell the way back
        const type = lanes ? (lanes.lane[i] !== lanes.lane[j] ? 2 : lanes.lane[i] === 1 ? 1 : 0) : second[j] ? 1 : second[i] ? 2 : 0;
        const exact = u >= 0 && v >= 0;
        const number = exact ? k - starts[i] : 0;
        const pair = this.between(u, v), key = (pair * 3 + type) * 16 + Math.min(number, 15);
        const at = known.get(key);
        if (at !== undefined) { many[at]++; continue; }
        known.set(key, from.length);
        const way = type === 0 ? ways.get(pair) : undefined;
        const inward = type === 0 ? inwards.get(v) : undefined;
        if (way) routes.set(from.length, way);
        else if (inward && !this.beside(u, v)) entries.set(from.length, inward);
        from.push(u); to.push(v); kind.push(type); slot.push(Math.min(number, 255)); many.push(1); first.push(j);
      }
    }
    return {
      from: Int32Array.from(from), to: Int32Array.from(to), kind: Uint8Array.from(kind),
      slot: Uint8Array.from(slot), many: Int32Array.from(many), first: Int32Array.from(first), routes, entries,
    };
  }
}

/** Lanes beside one another. */
function abreast(sizes: Member[]): Box {
  const x = new Float32Array(sizes.length), y = new Float32Array(sizes.length);
  let left = 0;
  sizes.forEach(([w], i) => { x[i] = left; left += w + LANE_GAP; });
  return { x, y, w: Math.max(0, left - LANE_GAP), h: Math.max(0, ...sizes.map(([, h]) => h)) };
}

/** The same with what is below above. The ways of edges are left out: they are for going down. */
function upsideDown(box: Box, sizes: Member[]): Box {
  return { x: box.x, y: Float32Array.from(box.y, (y, i) => box.h - y - sizes[i][1]), w: box.w, h: box.h };
}

/** Layers by longest path. Cycles, which scopes may form, are cut at the member that comes first. */
function layering(above: number[][], below: number[][], key: number[], pull = true): number[][] {
  const n = above.length, layer = new Int32Array(n), done = new Uint8Array(n);
  const waiting = Int32Array.from(above, (a) => a.length);
  const byKey = Array.from({ length: n }, (_, i) => i).sort((a, b) => key[a] - key[b] || a - b);
  const ready = byKey.filter((i) => waiting[i] === 0);
  const sequence: number[] = [];
  let next = 0;
  while (sequence.length < n) {
    if (!ready.length) {
      while (done[byKey[next]]) next++;
      ready.push(byKey[next]);
    }
    const i = ready.pop() as number;
    if (done[i]) continue;
    done[i] = 1;
    sequence.push(i);
    for (const b of below[i]) {
      if (done[b]) continue;
      layer[b] = Math.max(layer[b], layer[i] + 1);
      if (--waiting[b] === 0) ready.push(b);
    }
  }
  if (pull) { // what starts a chain stands near where it goes to
    for (const i of sequence.reverse()) {
      if (above[i].length || !below[i].length) continue;
      const near = Math.min(...below[i].map((b) => layer[b])) - 1;
      if (near > layer[i]) layer[i] = near;
    }
  }
  const layers: number[][] = [];
  for (const i of byKey) (layers[layer[i]] ??= []).push(i);
  return layers.filter((l) => l?.length);
}

/** The order within layers: by the mean of the neighbours, downwards and upwards in turns. */
function arrange(layers: number[][], above: number[][], below: number[][], key: number[]): number[][] {
  const at = new Float64Array(key.length);
  const number = (l: number[]) => l.forEach((m, i) => (at[m] = (i + 0.5) / l.length));
  layers.forEach(number);
  const mean = new Float64Array(key.length);
  for (let round = 0; round < 4; round++) {
    const down = round % 2 === 0, near = down ? above : below;
    for (let k = 0; k < layers.length; k++) {
      const l = layers[down ? k : layers.length - 1 - k];
      for (const m of l) {
        let sum = 0;
        for (const x of near[m]) sum += at[x];
        mean[m] = near[m].length ? sum / near[m].length : at[m];
      }
      l.sort((a, b) => mean[a] - mean[b] || key[a] - key[b] || a - b);
      number(l);
    }
  }
  return layers;
}

/** Coordinates of members in ordered layers: each as near to its neighbours as the others allow. */
function coordinates(
  layers: number[][], above: number[][], below: number[][], size: Size[],
  gapX: number, gapY: number, widest: number,
): Box {
  const x = new Float32Array(size.length), y = new Float32Array(size.length);
  const rows: number[][] = [];
  for (const l of layers) {
    let row: number[] = [], width = 0;
    for (const m of l) {
      if (row.length && width + size[m][0] > widest) { rows.push(row); row = []; width = 0; }
      row.push(m);
      width += size[m][0] + gapX;
    }
    rows.push(row);
  }
  let top = 0;
  for (const row of rows) {
    const h = Math.max(...row.map((m) => size[m][1]));
    for (const m of row) y[m] = top + (h - size[m][1]) / 2;
    top += h + gapY;
    let left = 0;
    for (const m of row) { x[m] = left; left += size[m][0] + gapX; }
    for (const m of row) x[m] -= (left - gapX) / 2;
  }
  const centre = (m: number) => x[m] + size[m][0] / 2;
  for (let round = 0; round < 6; round++) {
    const down = round % 2 === 0, near = down ? above : below;
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      const wanted = row.map((m) => {
        const n = near[m].length ? near[m] : down ? [] : above[m];
        return n.length ? n.reduce((sum, o) => sum + centre(o), 0) / n.length : centre(m);
      });
      spread(row, wanted, size, gapX, x);
    }
  }
  const tall = fold(rows, size, gapX, gapY, x, y, top - gapY);
  let least = Infinity, most = -Infinity;
  for (const row of rows) for (const m of row) { least = Math.min(least, x[m]); most = Math.max(most, x[m] + size[m][0]); }
  if (!rows.length) return { x, y, w: 0, h: 0 };
  for (let i = 0; i < x.length; i++) x[i] -= least;
  return { x, y, w: most - least, h: tall };
}

/** Breaks what is far taller than wide into columns, beside one another; returns the height. */
function fold(rows: number[][], size: Size[], gapX: number, gapY: number, x: Float32Array, y: Float32Array, height: number): number {
  let least = Infinity, most = -Infinity;
  for (const row of rows) for (const m of row) { least = Math.min(least, x[m]); most = Math.max(most, x[m] + size[m][0]); }
  const width = most - least, columns = Math.round(Math.sqrt(height / Math.max(width, 1) / 1.2));
  if (height < TALLEST || columns < 3) return height;
  let column = 0, start = 0, tall = 0;
  for (const row of rows) {
    const begin = Math.min(...row.map((m) => y[m])), end = Math.max(...row.map((m) => y[m] + size[m][1]));
    if (begin - start > height / columns) { column++; start = begin; }
    for (const m of row) { y[m] -= start; x[m] += column * (width + 4 * gapX); }
    tall = Math.max(tall, end - start + gapY);
  }
  return tall - gapY;
}

/** The centres that are nearest to the wanted ones, in the mean square, without overlap. */
function spread(row: number[], wanted: number[], size: Size[], gap: number, x: Float32Array): void {
  const shift: number[] = [];
  let offset = 0;
  for (let i = 0; i < row.length; i++) {
    if (i) offset += (size[row[i - 1]][0] + size[row[i]][0]) / 2 + gap;
    shift.push(offset);
  }
  const sums: number[] = [], counts: number[] = []; // blocks that move together
  for (let i = 0; i < row.length; i++) {
    sums.push(wanted[i] - shift[i]);
    counts.push(1);
    while (sums.length > 1 && sums[sums.length - 2] / counts[counts.length - 2] > sums[sums.length - 1] / counts[counts.length - 1]) {
      const s = sums.pop() as number, c = counts.pop() as number;
      sums[sums.length - 1] += s;
      counts[counts.length - 1] += c;
    }
  }
  let i = 0;
  for (let b = 0; b < sums.length; b++) {
    for (let k = 0; k < counts[b]; k++, i++) x[row[i]] = sums[b] / counts[b] + shift[i] - size[row[i]][0] / 2;
  }
}
