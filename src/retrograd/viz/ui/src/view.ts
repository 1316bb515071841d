// The picture: a canvas that draws what is in sight, with as much detail as can be read.

import { BESIDE, NODE_H, NODE_W, SCOPE_H, SCOPE_PORT, type Placed } from "./layout";
import { Grid } from "./grid";
import { groups, paintGroups, recordGroups, type Group } from "./groups";
import type { Model, Scope } from "./model";
import { forced, type Scheme } from "./colour";
import { bounds, follow, middle, PathPen, type Pen } from "./routes";
import { inline } from "./math";
import { brief, count, fitted, short, show, tail } from "./text";

export interface Marks { // what is emphasised; undefined where nothing is
  selected: number; hovered: number; highlight?: Set<number>; step?: { node: number; parents: number[] };
  warnings: Map<number, string>; sums?: Map<number, string>; group?: Set<number>;
}

export interface Camera { x: number; y: number; scale: number }

interface Ink { back: string; text: string; faint: string; line: string; edge: string; box: string; accent: string; gradient: string; warn: string }

const STUB = 34, LONG = 620;
const FAR = 0.33, TINY = 0.1; // scales below which there are no arrows, no outlines
const LEAST = 12; // pixels of the screen: no text is smaller; where there is no room for it, there is less text
const TWO = 0.76, ONE = 0.4; // scales from which a node has room for two lines, for one
const EDGES = 0.85; // and edges for what is written beside them

/** The size of letters that should be so large, or as large as can be read. */
function size(wanted: number, scale: number): number {
  return Math.max(wanted, LEAST / scale);
}

export class View {
  readonly canvas: HTMLCanvasElement;
  camera: Camera = { x: 0, y: 0, scale: 1 };
  placed: Placed | undefined;
  marks: Marks = { selected: -1, hovered: -1, warnings: new Map() };
  showShapes = true;
  private scheme: Scheme;
  private readonly model: Model;
  private readonly pen: CanvasRenderingContext2D;
  private ink: Ink;
  private frame = 0;
  private boxes: Float32Array = new Float32Array(0); // of edges: x and y of the start and of the end
  private reach: Float32Array = new Float32Array(0); // and the corners of all they may touch
  onDraw: (() => void) | undefined;

  constructor(canvas: HTMLCanvasElement, model: Model, scheme: Scheme) {
    this.canvas = canvas;
    this.model = model;
    this.scheme = scheme;
    this.pen = canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
    this.ink = this.colours();
  }

  private colours(): Ink {
    const style = getComputedStyle(document.documentElement);
    const get = (name: string) => style.getPropertyValue(name).trim();
    return {
      back: get("--back"), text: get("--text"), faint: get("--faint"), line: get("--line"), edge: get("--edge"), box: get("--box"),
      accent: get("--accent"), gradient: get("--gradient"), warn: get("--warn"),
    };
  }

  restyle(scheme: Scheme): void {
    this.scheme = scheme;
    this.ink = this.colours();
    this.redraw();
  }

  show(placed: Placed): void {
    this.placed = placed;
    this.measure();
    this.redraw();
  }

  resize(): void {
    const ratio = window.devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    const w = Math.max(1, Math.round(box.width * ratio)), h = Math.max(1, Math.round(box.height * ratio));
    if (this.canvas.width !== w || this.canvas.height !== h) { this.canvas.width = w; this.canvas.height = h; }
    this.draw();
  }

  redraw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  get width(): number { return this.canvas.clientWidth || 1; }
  get height(): number { return this.canvas.clientHeight || 1; }

  toWorld(px: number, py: number): [number, number] {
    const c = this.camera;
    return [(px - this.width / 2) / c.scale + c.x, (py - this.height / 2) / c.scale + c.y];
  }

  toScreen(x: number, y: number): [number, number] {
    const c = this.camera;
    return [(x - c.x) * c.scale + this.width / 2, (y - c.y) * c.scale + this.height / 2];
  }

  /** Shows all, below the legend. */
  fit(): void {
    const p = this.placed;
    if (!p) return;
    const above = 26, scale = Math.min(1.15, (this.width - 40) / Math.max(p.width, 1), (this.height - 40 - above) / Math.max(p.height, 1));
    this.camera = { x: p.width / 2, y: p.height / 2, scale: Math.max(scale, 0.002) };
    this.camera.y -= above / 2 / this.camera.scale;
    this.redraw();
  }

  /** Whether names in nodes can be read. */
  get legible(): boolean { return this.camera.scale >= ONE; }

  /** Moves the picture so that it fills the window, as far as there is something to fill it with. */
  clamp(): void {
    const p = this.placed, c = this.camera;
    if (!p) return;
    const within = (at: number, room: number, all: number) => (all <= room ? all / 2 : Math.max(room / 2, Math.min(all - room / 2, at)));
    c.x = within(c.x, (this.width - 40) / c.scale, p.width);
    c.y = within(c.y, (this.height - 66) / c.scale, p.height) - 12 / c.scale; // below the legend
    this.redraw();
  }

  pan(direction: "up" | "down" | "left" | "right"): void {
    const by = 60 / this.camera.scale;
    if (direction === "up" || direction === "down") this.camera.y += direction === "up" ? -by : by;
    else this.camera.x += direction === "left" ? -by : by;
    this.redraw();
  }

  zoom(factor: number, px = this.width / 2, py = this.height / 2): void {
    const [x, y] = this.toWorld(px, py), c = this.camera;
    c.scale = Math.max(0.002, Math.min(4, c.scale * factor));
    c.x = x - (px - this.width / 2) / c.scale;
    c.y = y - (py - this.height / 2) / c.scale;
    this.redraw();
  }

  /** The box of a node, or of a closed or open scope given as ~id. */
  box(item: number): [number, number, number, number] | undefined {
    const p = this.placed;
    if (!p) return undefined;
    const found: [number, number, number, number] = item >= 0
      ? [p.x[item], p.y[item], NODE_W, NODE_H] : [p.sx[~item], p.sy[~item], p.sw[~item], p.sh[~item]];
    if (item < 0 && Number.isNaN(found[2])) { found[2] = 210; found[3] = 60; }
    return Number.isNaN(found[0]) ? undefined : found;
  }

  /** Open scopes are higher, whatever is in them. */
  private isClosed(s: number): boolean { return !((this.placed as Placed).sh[s] > SCOPE_H); }

  /** Closed scopes have a place but were not laid out inside. */
  private scopeBox(s: number): [number, number, number, number] {
    const p = this.placed as Placed;
    return [p.sx[s], p.sy[s], Number.isNaN(p.sw[s]) ? 210 : p.sw[s], Number.isNaN(p.sh[s]) ? 60 : p.sh[s]];
  }

  at(px: number, py: number, open: Uint8Array): number | undefined {
    const p = this.placed;
    if (!p) return undefined;
    const [x, y] = this.toWorld(px, py), slack = this.camera.scale < FAR ? 3 / this.camera.scale : 0;
    for (let i = p.x.length - 1; i >= 0; i--) {
      if (x >= p.x[i] - slack && x <= p.x[i] + NODE_W + slack && y >= p.y[i] - slack && y <= p.y[i] + NODE_H + slack) return i;
    }
    let best: number | undefined, least = Infinity;
    for (let s = 1; s < p.sx.length; s++) {
      if (Number.isNaN(p.sx[s])) continue;
      const [bx, by, bw, bh] = this.scopeBox(s);
      const inside = x >= bx && x <= bx + bw && y >= by && y <= by + bh;
      if (inside && bw * bh < least && (!open[s] || y <= by + 30 || this.camera.scale < FAR)) { best = ~s; least = bw * bh; }
    }
    return best;
  }

  /** Where edges begin and end, by their sides, and which belong to what. */
  private ends(e: number): [number, number, number, number] {
    const p = this.placed as Placed, u = p.from[e], v = p.to[e], kind = p.kind[e];
    const a = u >= 0 ? this.box(u) : this.scopeBox(~u), b = v >= 0 ? this.box(v) : this.scopeBox(~v);
    if (!a || !b) return [NaN, NaN, NaN, NaN];
    const n = v >= 0 ? this.model.nodes[v].inputs.length : 1;
    const port = v >= 0 ? (p.slot[e] + 1) / (n + 1) : kind === 0 ? SCOPE_PORT : 1 - SCOPE_PORT;
    const start = u >= 0 ? 0.5 : kind === 1 && !this.model.lanes ? 1 - SCOPE_PORT : SCOPE_PORT;
    if (kind === 1 && b[1] + b[3] / 2 <= a[1] + a[3] / 2) return [a[0] + a[2] * start, a[1], b[0] + b[2] * port, b[1] + b[3]];
    if (this.sideways(e)) return [a[0] + a[2], a[1] + a[3] / 2, b[0], b[1] + (b[3] * (p.slot[e] + 1)) / (n + 1)];
    return [a[0] + a[2] * start, a[1] + a[3], b[0] + b[2] * port, b[1]];
  }

  private measure(): void {
    const p = this.placed as Placed, n = p.from.length;
    this.boxes = new Float32Array(4 * n);
    this.reach = new Float32Array(4 * n);
    this.shownScopes = depthFirst(this.model.scopes.filter((s) => s.id > 0 && !Number.isNaN(p.sx[s.id])));
    this.stubs = new Uint8Array(n);
    this.edgeGrid = new Grid(n);
    this.nodeGrid = new Grid(p.x.length);
    for (let i = 0; i < p.x.length; i++) if (!Number.isNaN(p.x[i])) this.nodeGrid.add(i, p.x[i], p.y[i], p.x[i] + NODE_W, p.y[i] + NODE_H);
    for (let e = 0; e < n; e++) {
      const [x0, y0, x1, y1] = this.ends(e);
      this.boxes.set([x0, y0, x1, y1], 4 * e);
      if (Number.isNaN(x0)) continue;
      const way = p.routes.get(e) ?? p.entries.get(e), [l, t, r, b] = way ? bounds(way) : [x0, y0, x1, y1];
      this.reach.set([Math.min(x0, x1, l) - 60, Math.min(y0, y1, t) - 60, Math.max(x0, x1, r) + 60, Math.max(y0, y1, b) + 60], 4 * e);
      if (this.isStub(e)) {
        this.stubs[e] = 1;
        this.edgeGrid.add(e, x0 - 60, y0 - 60, x0 + 60, y0 + 60);
        this.edgeGrid.add(e, x1 - 60, y1 - 60, x1 + 60, y1 + 60);
      } else this.edgeGrid.add(e, this.reach[4 * e], this.reach[4 * e + 1], this.reach[4 * e + 2], this.reach[4 * e + 3]);
    }
    const near = new Map<number, number[]>();
    for (let e = 0; e < n; e++) for (const item of [p.from[e], p.to[e]]) {
      const known = near.get(item);
      if (known) known.push(e); else near.set(item, [e]);
    }
    this.incident = near;
  }

  private shownScopes: Scope[] = [];
  private stubs = new Uint8Array(0);
  private edgeGrid = new Grid(0);
  private nodeGrid = new Grid(0);
  private incident = new Map<number, number[]>();

  edgesOf(item: number): number[] { return this.incident.get(item) ?? []; }

  /** Down or up: gradients go up beside their forward nodes, and down where they have none. */
  private direction(e: number): number {
    const i = 4 * e;
    return (this.placed as Placed).kind[e] === 1 && this.boxes[i + 3] <= this.boxes[i + 1] + 1 ? -1 : 1;
  }

  /** From the side of a box to the side of another. */
  private sideways(e: number): boolean {
    const p = this.placed as Placed;
    return p.kind[e] === 2 && (p.from[e] >= 0 || this.model.lanes !== undefined);
  }

  private isStub(e: number): boolean {
    const p = this.placed as Placed, b = this.boxes, i = 4 * e;
    if (p.kind[e] === 2 && this.model.lanes) return this.model.lanes.isFar(p.first[e], p.from[e], p.to[e], b[i + 3] - b[i + 1]);
    if (p.kind[e] === 2) {
      const v = p.to[e];
      return !(v >= 0 && this.model.unit[v] === p.from[e]);
    }
    return Math.abs(b[i + 3] - b[i + 1]) + 0.6 * Math.abs(b[i + 2] - b[i]) > (p.from[e] >= 0 && p.to[e] >= 0 ? LONG : 1.5 * LONG);
  }

  private curve(pen: Pen, e: number): void {
    const p = this.placed as Placed, b = this.boxes, i = 4 * e;
    const [x0, y0, x1, y1] = [b[i], b[i + 1], b[i + 2], b[i + 3]];
    const route = p.routes.get(e), entry = p.entries.get(e), way = route ?? entry;
    if (way) { follow(pen, way, [x0, y0, x1, y1], way === entry); return; }
    pen.moveTo(x0, y0);
    if (this.sideways(e)) {
      const bend = Math.max(16, Math.min(120, Math.abs(x1 - x0) / 2));
      pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
      return;
    }
    const bend = Math.max(14, Math.min(110, Math.abs(y1 - y0) / 2)) * this.direction(e);
    pen.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }

  private stub(pen: CanvasRenderingContext2D, e: number): void {
    const b = this.boxes, i = 4 * e;
    const sideways = this.sideways(e);
    const step = STUB * this.direction(e);
    if (sideways) {
      pen.moveTo(b[i + 2] - STUB / 2, b[i + 3]); pen.lineTo(b[i + 2], b[i + 3]);
    } else {
      pen.moveTo(b[i], b[i + 1]); pen.lineTo(b[i], b[i + 1] + step / 2);
      pen.moveTo(b[i + 2], b[i + 3] - step / 2); pen.lineTo(b[i + 2], b[i + 3]);
    }
  }

  draw(): void {
    const p = this.placed, pen = this.pen;
    const ratio = this.canvas.width / this.width, { x, y, scale } = this.camera;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = this.ink.back;
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    if (!p) return;
    const k = ratio * scale;
    pen.setTransform(k, 0, 0, k, this.canvas.width / 2 - x * k, this.canvas.height / 2 - y * k);
    const half = [this.width / 2 / scale, this.height / 2 / scale];
    this.paint(pen, [x - half[0], y - half[1], x + half[0], y + half[1]], scale);
    this.onDraw?.();
  }

  /** Draws what lies in a part of the world. Also what exports use. */
  paint(pen: CanvasRenderingContext2D, area: [number, number, number, number], scale: number): void {
    const p = this.placed as Placed;
    this.paintScopes(pen, area, scale);
    if (this.scheme.grouped && scale > TINY) paintGroups(pen, this.patches(), p, area, this.patchInk(), (e) => this.curve(pen, e), scale > FAR);
    const marked = this.marks.highlight;
    pen.globalAlpha = 1;
    this.paintEdges(pen, area, scale);
    const inSight: number[] = [];
    const [l, t, r, b] = area;
    const candidates = this.nodeGrid.near(area) ?? p.x.keys();
    if (NODE_W * scale > 1) for (const i of candidates) { // below that, the scopes say it all
      if (p.x[i] + NODE_W >= l && p.x[i] <= r && p.y[i] + NODE_H >= t && p.y[i] <= b) inSight.push(i);
    }
    if (scale < FAR && inSight.length > 300) this.paintFar(pen, inSight, scale);
    else for (const i of inSight) { pen.globalAlpha = marked && !marked.has(i) ? 0.28 : 1; this.paintNode(pen, i, scale); }
    pen.globalAlpha = 1;
    if (scale < ONE) this.paintFarNames(pen, area, scale);
    this.paintEmphasis(pen, area, scale);
  }

  /** Names of open scopes where nodes have none: above the nodes, in scopes that are large enough. */
  private paintFarNames(pen: CanvasRenderingContext2D, [l, t, r, b]: [number, number, number, number], scale: number): void {
    pen.strokeStyle = this.ink.back;
    pen.lineJoin = "round";
    for (const s of this.shownScopes) {
      const [x, y, w, h] = this.scopeBox(s.id);
      if (x > r || x + w < l || y > b || y + h < t || h * scale < 34 || Number.isNaN((this.placed as Placed).sw[s.id])) continue;
      this.paintScopeText(pen, s, false, scale, 4 / scale);
    }
  }

  private paintFar(pen: CanvasRenderingContext2D, ids: number[], scale: number): void {
    const p = this.placed as Placed, marked = this.marks.highlight;
    const byColour = new Map<string, number[]>();
    for (const i of ids) {
      const c = (marked && !marked.has(i) ? "-" : "+") + this.scheme.of(i);
      const known = byColour.get(c);
      if (known) known.push(i); else byColour.set(c, [i]);
    }
    for (const [c, members] of byColour) {
      pen.globalAlpha = c[0] === "-" ? 0.25 : 1;
      pen.fillStyle = c.slice(1);
      for (const i of members) pen.fillRect(p.x[i], p.y[i], NODE_W, NODE_H);
    }
    pen.globalAlpha = 1;
    if (scale < TINY) return;
    pen.strokeStyle = this.ink.line;
    pen.lineWidth = 1;
    for (const i of ids) pen.strokeRect(p.x[i], p.y[i], NODE_W, NODE_H);
  }

  private paintScopes(pen: CanvasRenderingContext2D, [l, t, r, b]: number[], scale: number): void {
    const p = this.placed as Placed, marked = this.marks.highlight;
    const reps = marked ? new Set([...marked].map((i) => p.stands[i]).filter((v) => v < -1).map((v) => ~v)) : undefined;
    for (const s of this.shownScopes) {
      const [x, y, w, h] = this.scopeBox(s.id);
      if (w * scale < 1 && h * scale < 1) continue;
      if (x > r || x + w < l || y > b || y + h < t) continue;
      const closed = this.isClosed(s.id), selected = this.marks.selected === ~s.id, hovered = this.marks.hovered === ~s.id;
      pen.globalAlpha = closed && reps && !reps.has(s.id) ? 0.3 : 1;
      pen.lineWidth = selected ? 2.5 / Math.min(1, scale * 1.5) : hovered ? 2 : 1;
      pen.strokeStyle = selected || hovered ? this.ink.accent : closed ? this.ink.edge : this.ink.line;
      roundRect(pen, x, y, w, h, closed ? 10 : 12);
      pen.fillStyle = closed ? this.scheme.ofScope?.(s.id) ?? this.ink.box : this.openFill(s.id);
      pen.fill();
      if (closed && s.backward && s.forward && scale > TINY) {
        pen.save();
        pen.clip();
        pen.fillStyle = this.ink.gradient;
        pen.globalAlpha *= 0.13;
        pen.fillRect(x + w * 0.5, y, w * 0.5, h);
        pen.restore();
      }
      pen.stroke();
      if (scale >= ONE || closed) this.paintScopeText(pen, s, closed, scale);
    }
    pen.globalAlpha = 1;
  }

  private paintScopeText(pen: CanvasRenderingContext2D, s: Scope, closed: boolean, scale: number, halo = 0): void {
    const [x, y, w, h] = this.scopeBox(s.id), large = size(13, scale), pad = Math.min(12, 6 / scale), room = w - 2 * pad;
    if (room < 2.4 * large || h * scale < 17) return;
    const fit = (text: string, width: number) => fitted(text, width, (t) => pen.measureText(t).width);
    const both = closed && scale >= TWO;
    pen.fillStyle = this.ink.text;
    pen.textAlign = "left";
    pen.font = `600 ${large}px system-ui, sans-serif`;
    const name = fit(s.name, room), down = closed && !both ? h / 2 + large * 0.35 : closed ? (s.call?.formula ? 20 : 24) : Math.max(18, large + 2);
    pen.lineWidth = halo;
    if (halo) pen.strokeText(name, x + pad, y + down);
    pen.fillText(name, x + pad, y + down);
    if (!both) return;
    const named = pen.measureText(s.name).width, place = this.model.placeOf(s.call?.source);
    pen.font = `${size(12, scale)}px system-ui, sans-serif`;
    pen.fillStyle = this.ink.faint;
    if (place && named + pen.measureText(place).width + 2 * pad < room) {
      pen.textAlign = "right";
      pen.fillText(place, x + w - pad, y + (s.call?.formula ? 20 : 24));
      pen.textAlign = "left";
    }
    const [told, text, back] = scopeLines(s), half = w / 2 - pad;
    if (told) pen.fillText(fit(told, room), x + pad, y + 38);
    pen.fillText(fit(text, back ? half : room), x + pad, y + (told ? 54 : 46));
    if (back) pen.fillText(fit(back, half), x + w / 2 + 6, y + (told ? 54 : 46));
  }

  private openFill(s: number): string {
    let depth = 0;
    for (let p = this.model.scopes[s].parent; p > 0; p = this.model.scopes[p].parent) depth++;
    const dark = document.documentElement.dataset.theme === "dark";
    return forced() ? "Canvas" : dark ? `hsl(220 12% ${12 + 3 * Math.min(depth, 5)}%)` : `hsl(216 30% ${97.5 - 1.5 * Math.min(depth, 5)}%)`;
  }

  private paintEdges(pen: CanvasRenderingContext2D, [l, t, r, b]: [number, number, number, number], scale: number): void {
    const p = this.placed as Placed, box = this.boxes, reach = this.reach, marked = this.marks.highlight;
    const lit = marked && this.litItems(marked), bright: number[][] = [[], [], []];
    const whole: number[][] = [[], [], []], stubs: number[][] = [[], [], []];
    if (scale < 0.06 && p.from.length > 3000) return;
    for (const e of this.edgeGrid.near([l, t, r, b]) ?? p.from.keys()) {
      const i = 4 * e;
      if (!(reach[i] <= r && reach[i + 2] >= l && reach[i + 1] <= b && reach[i + 3] >= t) || Number.isNaN(box[i])) continue;
      (this.stubs[e] ? stubs : whole)[p.kind[e]].push(e);
    }
    const total = whole[0].length + whole[1].length + whole[2].length;
    const straight = scale < 0.2 && total > 1500;
    pen.globalAlpha = marked ? 0.25 : scale < TINY ? 0.5 : 1;
    for (const kind of [2, 0, 1]) {
      pen.strokeStyle = kind === 1 ? this.ink.gradient : this.ink.faint;
      pen.lineWidth = Math.max(1, 0.7 / scale) * (kind === 2 ? 0.7 : 1.1);
      pen.setLineDash(kind === 2 && scale > FAR ? [4, 4] : []);
      pen.beginPath();
      for (const e of whole[kind]) {
        if (lit?.has(p.from[e]) && lit.has(p.to[e])) { bright[kind].push(e); continue; }
        if (straight) { pen.moveTo(box[4 * e], box[4 * e + 1]); pen.lineTo(box[4 * e + 2], box[4 * e + 3]); } else this.curve(pen, e);
      }
      if (scale > TINY) for (const e of stubs[kind]) this.stub(pen, e);
      pen.stroke();
    }
    for (const kind of [2, 0, 1]) { // between what is highlighted
      if (!bright[kind].length) continue;
      pen.globalAlpha = 1;
      pen.strokeStyle = kind === 1 ? this.ink.gradient : this.ink.text;
      pen.lineWidth = Math.max(1.4, 1 / scale);
      pen.setLineDash(kind === 2 ? [5, 4] : []);
      pen.beginPath();
      for (const e of bright[kind]) this.curve(pen, e);
      pen.stroke();
    }
    pen.globalAlpha = marked ? 0.45 : 1;
    pen.setLineDash([]);
    if (scale > FAR) { this.paintArrows(pen, [...whole[0], ...whole[1], ...whole[2], ...stubs[0], ...stubs[1], ...stubs[2]]); if (scale >= TWO) this.paintStubNames(pen, [...stubs[2], ...stubs[0], ...stubs[1]], scale); }
    if (scale >= EDGES && this.showShapes) this.paintShapes(pen, [...whole[0], ...whole[1]], scale);
    pen.globalAlpha = 1;
  }

  /** What is seen in the places of highlighted nodes. */
  private litItems(marked: Set<number>): Set<number> {
    if (this.litFor !== marked || this.litIn !== this.placed) {
      const stands = (this.placed as Placed).stands;
      this.lit = new Set([...marked].map((i) => stands[i]));
      this.litFor = marked;
      this.litIn = this.placed;
    }
    return this.lit;
  }

  private lit = new Set<number>();
  private litFor: Set<number> | undefined;
  private litIn: Placed | undefined;

  private paintArrows(pen: CanvasRenderingContext2D, edges: number[]): void {
    const p = this.placed as Placed, b = this.boxes;
    for (const e of edges) {
      const i = 4 * e, x = b[i + 2], y = b[i + 3], kind = p.kind[e];
      pen.fillStyle = kind === 1 ? this.ink.gradient : this.ink.faint;
      pen.beginPath();
      pen.moveTo(x, y);
      if (this.sideways(e)) { pen.lineTo(x - 6, y - 3); pen.lineTo(x - 6, y + 3); }
      else { const s = -7 * this.direction(e); pen.lineTo(x - 3.5, y + s); pen.lineTo(x + 3.5, y + s); }
      pen.fill();
    }
  }

  private paintStubNames(pen: CanvasRenderingContext2D, edges: number[], scale: number): void {
    const p = this.placed as Placed, b = this.boxes, large = size(12, scale), room = Math.floor((BESIDE - STUB / 2 - 4) / (large * 0.55));
    pen.font = `${large}px system-ui, sans-serif`;
    pen.fillStyle = this.ink.faint;
    for (const e of edges) {
      const i = 4 * e, sideways = this.sideways(e), name = short(this.model.label(p.first[e]), sideways ? room : 10);
      if (sideways) { pen.textAlign = "right"; pen.fillText(name, b[i + 2] - STUB / 2 - 2, b[i + 3] + 3); }
      else { pen.textAlign = "center"; pen.fillText(name, b[i + 2], b[i + 3] + (this.direction(e) < 0 ? STUB / 2 + large - 1 : -STUB / 2 - 2)); }
    }
  }

  private paintShapes(pen: CanvasRenderingContext2D, edges: number[], scale: number): void {
    pen.font = `${size(12, scale)}px system-ui, sans-serif`;
    pen.textAlign = "left";
    pen.strokeStyle = this.ink.back; // keeps lines off the letters
    pen.lineWidth = 3;
    for (const [text, x, y, kind] of this.shapes(edges)) {
      pen.strokeText(text, x, y);
      pen.fillStyle = kind === 1 ? this.ink.gradient : this.ink.faint;
      pen.fillText(text, x, y);
    }
  }

  /** What is written beside edges, and where: of those from one node at one place one. */
  private *shapes(edges: Iterable<number>): Generator<[text: string, x: number, y: number, kind: number]> {
    const p = this.placed as Placed, b = this.boxes;
    const seen = new Set<string>();
    for (const e of edges) {
      const i = 4 * e, text = p.many[e] > 1 ? `${p.many[e]} values` : this.model.nodes[p.first[e]].shape;
      if (!text) continue;
      const way = p.routes.get(e) ?? p.entries.get(e);
      const [mx, my] = way ? middle(way) : [b[i] * 0.35 + b[i + 2] * 0.65, b[i + 1] * 0.45 + b[i + 3] * 0.55];
      const x = mx + 4, y = my + 3;
      const key = `${p.from[e]} ${Math.round(x / 40)} ${Math.round(y / 12)}`;
      if (seen.has(key)) continue;
      seen.add(key);
      yield [text, x, y, p.kind[e]];
    }
  }

  private paintNode(pen: CanvasRenderingContext2D, id: number, scale: number): void {
    const p = this.placed as Placed, r = this.model.nodes[id], x = p.x[id], y = p.y[id];
    const output = r.outputs.length > 0, second = this.model.second[id];
    pen.fillStyle = this.scheme.of(id);
    roundRect(pen, x, y, NODE_W, NODE_H, r.inputs.length === 0 ? NODE_H / 2 : 7);
    pen.fill();
    pen.strokeStyle = r.change === "removed" ? this.ink.warn : second ? this.ink.gradient : this.ink.edge;
    pen.lineWidth = output ? 2.4 : 1;
    if (!r.computed || r.change === "removed") pen.setLineDash([5, 4]);
    pen.stroke();
    pen.setLineDash([]);
    if (scale >= ONE) this.paintNodeText(pen, id, scale);
  }

  /** Name and value, as much of them as there is room for. */
  private paintNodeText(pen: CanvasRenderingContext2D, id: number, scale: number): void {
    const p = this.placed as Placed, r = this.model.nodes[id], x = p.x[id], y = p.y[id], second = this.model.second[id];
    const large = size(12.5, scale), measure = (text: string) => pen.measureText(text).width;
    const write = (text: string, down: number, cut = short) => { pen.fillText(fitted(text, NODE_W - 6, measure, cut), x + NODE_W / 2, y + down); };
    pen.textAlign = "center";
    pen.fillStyle = this.ink.text;
    pen.font = `${scale < TWO ? 500 : 600} ${large}px system-ui, sans-serif`;
    if (scale < TWO) {
      write(this.oneLine(id, (text) => measure(text) <= NODE_W - 6), NODE_H / 2 + large * 0.35);
      return;
    }
    write(this.model.titles[id], 18, tail);
    pen.font = `${size(12, scale)}px ui-monospace, SFMono-Regular, Menlo, monospace`;
    write(this.second(id), 35);
    if (!r.outputs.length || scale < EDGES) return;
    const names = r.outputs.map((k) => this.model.doc.output_names[k] || `output ${k}`).filter((n) => n !== r.name).join(", ");
    pen.font = `600 ${size(12, scale)}px system-ui, sans-serif`;
    pen.fillStyle = second ? this.ink.gradient : this.ink.accent;
    pen.textAlign = "left";
    pen.fillText(tail(names, 20), x + 6, second ? y - 5 : y + NODE_H + 14);
  }

  /** A name, with its value if that is a number and there is room. */
  private oneLine(id: number, fits: (text: string) => boolean): string {
    const r = this.model.nodes[id], v = this.model.number(id);
    const name = r.name || this.model.titles[id], both = v === undefined ? name : `${name} ${show(v, 3)}`;
    return fits(both) ? both : fits(name) ? name : r.name ? r.name.split(".").slice(-2).join(".") : name.split("(")[0];
  }

  /** The second line: the value, where it is short, else the type. */
  private second(id: number): string {
    const r = this.model.nodes[id], v = this.model.summary(id);
    const sum = this.marks.sums?.get(id);
    if (v?.data && v.size === undefined) {
      const g = sum ?? (this.marks.sums ? undefined : this.gradientText(id));
      return g ? `${brief(v)}  ∂ ${g}` : brief(v);
    }
    if (sum) return `∂ ${sum}`;
    return r.attrs && r.inputs.length ? `${r.type} ${r.attrs}` : r.type;
  }

  private gradientText(id: number): string | undefined {
    const g = this.model.nodes[id].gradient;
    return g === undefined || g === null || this.model.second[id] ? undefined : brief(this.model.summary(g)) || undefined;
  }

  /** The fused kernels whose nodes are in sight of one another. */
  private patches(): Group[] {
    if (this.patchesOf !== this.placed) {
      this.found = groups(this.model, this.placed as Placed, this.stubs);
      this.patchesOf = this.placed;
    }
    return this.found;
  }

  private patchInk() {
    return { edge: this.ink.faint, inside: (g: Group) => this.scheme.of(g.ids[0]) };
  }

  private found: Group[] = [];
  private patchesOf: Placed | undefined;

  /** An edge as the data of an SVG path. */
  private path(e: number): string {
    const pen = new PathPen();
    this.curve(pen, e);
    return pen.text;
  }

  /** What is laid out as SVG elements. */
  record(out: string[], ink: Record<string, string>, xml: (text: string) => string): void {
    const p = this.placed as Placed, n1 = (x: number) => x.toFixed(1);
    for (const s of this.shownScopes) {
      const [x, y, w, h] = this.scopeBox(s.id), closed = this.isClosed(s.id);
      out.push(`<rect x="${n1(x)}" y="${n1(y)}" width="${n1(w)}" height="${n1(h)}" rx="10" fill="${closed ? this.scheme.ofScope?.(s.id) ?? ink.box : this.openFill(s.id)}" stroke="${ink.line}"/>`);
      out.push(`<text x="${n1(x + 12)}" y="${n1(y + (closed ? (s.call?.formula ? 20 : 24) : 18))}" font-size="13" font-weight="600" fill="${ink.text}">${xml(s.name)}</text>`);
      if (!closed) continue;
      const [told, text, back] = scopeLines(s), line = (at: number, words: string) => out.push(`<text x="${n1(x + 12)}" y="${n1(y + at)}" font-size="12" fill="${ink.faint}">${xml(words)}</text>`);
      if (told) line(39, short(told, 30));
      line(told ? 53 : 44, back ? `${text}, ${back}` : text);
    }
    if (this.scheme.grouped) recordGroups(out, this.patches(), p, this.patchInk(), (e) => this.path(e));
    for (let e = 0; e < p.from.length; e++) {
      const [x0, y0, x1, y1] = this.boxes.subarray(4 * e, 4 * e + 4), kind = p.kind[e];
      if (Number.isNaN(x0)) continue;
      const sideways = this.sideways(e);
      const d = !this.stubs[e] ? this.path(e) : sideways ? `M${n1(x1 - STUB / 2)} ${n1(y1)}H${n1(x1)}`
        : `M${n1(x0)} ${n1(y0)}v${(STUB / 2) * this.direction(e)}M${n1(x1)} ${n1(y1)}v${(-STUB / 2) * this.direction(e)}`;
      const colour = kind === 1 ? ink.gradient : ink.faint, s = -7 * this.direction(e);
      out.push(`<path d="${d}" fill="none" stroke="${colour}"${kind === 2 ? ' stroke-dasharray="4 4"' : ""}/>`);
      out.push(`<path d="M${n1(x1)} ${n1(y1)}${sideways ? "l-6 -3v6z" : `l-3.5 ${s}h7z`}" fill="${colour}"/>`);
    }
    const whole = [...p.from.keys()].filter((e) => !this.stubs[e] && p.kind[e] < 2 && !Number.isNaN(this.boxes[4 * e]));
    for (const [text, x, y, kind] of this.shapes(whole)) {
      out.push(`<text x="${n1(x)}" y="${n1(y)}" font-size="12" fill="${kind === 1 ? ink.gradient : ink.faint}">${xml(text)}</text>`);
    }
    for (let i = 0; i < p.x.length; i++) {
      if (Number.isNaN(p.x[i])) continue;
      const r = this.model.nodes[i], x = p.x[i], y = p.y[i];
      out.push(`<rect x="${n1(x)}" y="${n1(y)}" width="${NODE_W}" height="${NODE_H}" rx="${r.inputs.length ? 7 : NODE_H / 2}" fill="${this.scheme.of(i)}" stroke="${this.model.second[i] ? ink.gradient : ink.line}"${r.outputs.length ? ' stroke-width="2.4"' : ""}${r.computed ? "" : ' stroke-dasharray="5 4"'}/>`);
      out.push(`<text x="${n1(x + NODE_W / 2)}" y="${n1(y + 17)}" text-anchor="middle" font-size="12.5" font-weight="600" fill="${ink.text}">${xml(tail(this.model.titles[i], 19))}</text>`);
      out.push(`<text x="${n1(x + NODE_W / 2)}" y="${n1(y + 33)}" text-anchor="middle" font-size="12" fill="${ink.faint}">${xml(short(this.second(i), 20))}</text>`);
    }
  }

  private paintEmphasis(pen: CanvasRenderingContext2D, [l, t, r, b]: number[], scale: number): void {
    const p = this.placed as Placed, m = this.marks;
    const ring = (id: number, colour: string, width: number, pad: number) => {
      const box = id >= 0 ? this.box(p.stands[id] === -1 ? id : p.stands[id] >= 0 ? p.stands[id] : ~~p.stands[id]) : this.box(id);
      if (!box) return;
      pen.strokeStyle = colour;
      pen.lineWidth = width / Math.min(1, Math.max(scale, 0.02) * 1.4);
      roundRect(pen, box[0] - pad, box[1] - pad, box[2] + 2 * pad, box[3] + 2 * pad, 9);
      pen.stroke();
    };
    const lines = (item: number) => {
      for (const e of this.edgesOf(item)) {
        const i = 4 * e;
        if (Number.isNaN(this.boxes[i])) continue;
        pen.strokeStyle = p.kind[e] === 1 ? this.ink.gradient : this.ink.accent;
        pen.lineWidth = Math.max(1.8, 1.2 / scale);
        pen.setLineDash(p.kind[e] === 2 ? [6, 4] : []);
        pen.beginPath();
        this.curve(pen, e);
        pen.stroke();
      }
      pen.setLineDash([]);
    };
    if (m.group) for (const id of m.group) if (p.x[id] < r && p.x[id] + NODE_W > l && p.y[id] < b && p.y[id] + NODE_H > t) ring(id, this.ink.accent, 1.6, 3);
    const told = new Set<number>();
    for (const [id] of m.warnings) {
      const item = p.stands[id];
      if (told.has(item)) continue;
      told.add(item);
      const box = item >= 0 ? this.box(item) : item < -1 ? this.scopeBox(~item) : undefined;
      if (!box || box[0] > r || box[0] + box[2] < l || box[1] > b || box[1] + box[3] < t) continue;
      pen.fillStyle = this.ink.warn;
      pen.beginPath();
      pen.arc(box[0] + box[2] - 2, box[1] + 2, Math.max(8.5, Math.min(3 / scale, m.warnings.size > 50 ? 16 : 60)), 0, 7);
      pen.fill();
      if (scale < TWO) continue;
      pen.fillStyle = this.ink.back;
      pen.font = `700 ${size(12, scale)}px system-ui, sans-serif`;
      pen.textAlign = "center";
      pen.fillText("!", box[0] + box[2] - 2, box[1] + 6.5);
    }
    if (m.hovered !== -1) { lines(m.hovered); if (m.hovered >= 0) ring(m.hovered, this.ink.accent, 1.5, 2); }
    if (m.selected !== -1) { lines(m.selected >= 0 ? (p.stands[m.selected] === -1 ? m.selected : p.stands[m.selected]) : m.selected); ring(m.selected, this.ink.accent, 2.6, 3); }
    if (m.step) {
      for (const x of m.step.parents) ring(x, this.ink.gradient, 2, 3);
      ring(m.step.node, this.ink.gradient, 4, 5);
    }
  }
}

/** What a closed scope says below its name: a formula, and how much is in it. */
function scopeLines(s: Scope): [string, string, string] {
  const formula = s.call?.formula.split("\n")[0];
  const both = s.backward && s.forward, front = s.note || (both ? `${s.forward.toLocaleString("en")} forward` : count(s.count, "node"));
  return [formula ? inline(formula) : "", front, both ? `${s.backward.toLocaleString("en")} backward` : ""];
}

function depthFirst<T extends { id: number; parent: number }>(scopes: T[]): T[] {
  const within = new Map<number, T[]>();
  for (const s of scopes) { const known = within.get(s.parent); if (known) known.push(s); else within.set(s.parent, [s]); }
  const found: T[] = [], todo = [...(within.get(0) ?? [])].reverse();
  while (todo.length) {
    const s = todo.pop() as T;
    found.push(s);
    todo.push(...(within.get(s.id) ?? []).slice().reverse());
  }
  return found;
}

export function roundRect(pen: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, r: number): void {
  pen.beginPath();
  pen.roundRect(x, y, w, h, r);
}
