// The state of the explorer: what is open, selected, highlighted; and the gestures that change it.

import { MODES, scheme, type Mode } from "./colour";
import type { Engine } from "./engine";
import type { Model } from "./model";
import { View } from "./view";
import { count, show } from "./text";

const READABLE = 30; // boxes that a graph opens with, about

export type Spread = "near" | "upstream" | "downstream" | "paths";

export class App {
  readonly model: Model;
  readonly view: View;
  readonly engine: Engine;
  open: Uint8Array;
  beside = true;
  mode: Mode = "role";
  spread: Spread = "near";
  selected = -1; // the id of a node, ~id of a scope, or -1
  ready: Promise<void> = Promise.resolve();
  onFind: ((query: string) => void) | undefined;
  readonly onSelect: (() => void)[] = [];
  readonly onScheme: (() => void)[] = [];
  readonly onOpen: (() => void)[] = [];
  private readonly live: HTMLElement;

  constructor(model: Model, engine: Engine, canvas: HTMLCanvasElement, live: HTMLElement) {
    this.model = model;
    this.live = live;
    this.open = new Uint8Array(model.scopes.length);
    this.open[0] = 1;
    this.engine = engine;
    engine.take(model);
    if (model.nodes.some((r) => r.change && r.change !== "same")) this.mode = "change";
    this.view = new View(canvas, model, scheme(model, this.mode));
    this.view.marks.warnings = warnings(model);
    if (model.nodes.length <= 160) this.open.fill(1);
    else this.openFew();
    new ResizeObserver(() => this.view.resize()).observe(canvas);
    this.gestures(canvas);
    this.keys(canvas);
  }

  /** Opens what would otherwise show next to nothing. */
  private openFew(): void {
    const { scopes, unit, folded } = this.model;
    const members = (s: number) => scopes[s].children.length + scopes[s].nodes.filter((x) => unit[x] === x && !folded[x]).length;
    let shown = members(0), at = [...scopes[0].children];
    while (at.length) { // outer scopes first, as long as the whole can still be read
      const next: number[] = [];
      for (const s of at.sort((a, b) => members(a) - members(b))) {
        if (shown + members(s) > READABLE) continue;
        this.open[s] = 1;
        shown += members(s) - 1;
        next.push(...scopes[s].children);
      }
      at = next;
    }
  }

  async start(): Promise<void> {
    await this.layout();
    this.view.resize();
    this.view.fit();
  }

  /** Lays out anew. What `anchor` names stays where it is on the screen. */
  layout(anchor?: number): Promise<void> {
    const before = anchor === undefined ? undefined : this.corner(anchor);
    const turn = this.engine.place(this.open, this.beside).then((placed) => {
      this.view.show(placed);
      const after = anchor === undefined ? undefined : this.corner(anchor);
      if (before && after) { this.view.camera.x += after[0] - before[0]; this.view.camera.y += after[1] - before[1]; }
      this.view.redraw();
      for (const f of this.onOpen) f();
    });
    this.ready = turn;
    return turn;
  }

  private corner(item: number): [number, number] | undefined {
    const box = this.view.box(item);
    return box ? [box[0], box[1]] : undefined;
  }

  announce(text: string): void { this.live.textContent = text; }

  toggle(scope: number): Promise<void> {
    this.open[scope] = this.open[scope] ? 0 : 1;
    const s = this.model.scopes[scope];
    this.announce(`${s.name} ${this.open[scope] ? "opened" : "closed"}, ${count(s.count, "node")}`);
    return this.layout(~scope);
  }

  async setAll(open: boolean): Promise<void> {
    this.open.fill(open ? 1 : 0);
    this.open[0] = 1;
    await this.layout();
    this.view.fit();
    this.announce(open ? "everything opened" : "everything closed");
  }

  async setBeside(beside: boolean): Promise<void> {
    this.beside = beside;
    await this.layout(this.selected === -1 ? undefined : this.selected);
    if (this.selected === -1) this.view.fit();
  }

  setMode(mode: string): void {
    this.mode = MODES.find((m) => m === mode) ?? "role";
    this.restyle();
  }

  restyle(): void {
    this.view.restyle(scheme(this.model, this.mode));
    for (const f of this.onScheme) f();
  }

  select(item: number): void {
    this.selected = item;
    this.view.marks.selected = item;
    this.view.marks.group = undefined;
    this.mark();
    if (item >= 0) this.announce(this.describe(item));
    else if (item !== -1) this.announce(`${this.model.scopes[~item].name}, ${count(this.model.scopes[~item].count, "node")}`);
    try { history.replaceState(null, "", item >= 0 ? `#node=${item}` : location.pathname + location.search); } catch { /* of a frame */ }
    for (const f of this.onSelect) f();
  }

  setSpread(spread: Spread): void {
    this.spread = spread;
    this.mark();
    for (const f of this.onSelect) f();
  }

  private mark(): void {
    const m = this.model, id = this.selected;
    this.view.marks.highlight = id < 0 || this.spread === "near" ? undefined
      : this.spread === "upstream" ? m.reach([id], false)
      : this.spread === "downstream" ? m.reach([id], true) : m.paths(id);
    this.view.redraw();
  }

  describe(id: number): string {
    const r = this.model.nodes[id], v = this.model.number(id);
    return [this.model.titles[id], r.type, r.role, v === undefined ? "" : show(v), r.scope && `in ${r.scope}`].filter(Boolean).join(", ");
  }

  /** Opens what a node is in, selects it and brings it into sight. */
  async focus(id: number, zoom = true): Promise<void> {
    let changed = false;
    for (let s = this.model.scopeOf[id]; s > 0; s = this.model.scopes[s].parent) if (!this.open[s]) { this.open[s] = 1; changed = true; }
    if (changed) await this.layout(); else await this.ready;
    this.select(id);
    this.centre(id, zoom);
  }

  centre(item: number, zoom = true): void {
    const stands = item >= 0 ? this.view.placed?.stands[item] : item;
    const box = this.view.box(stands === undefined || stands === -1 ? item : stands) ?? this.view.box(item >= 0 ? this.model.unit[item] : item);
    if (!box) return;
    const c = this.view.camera;
    c.x = box[0] + box[2] / 2;
    c.y = box[1] + box[3] / 2;
    if (zoom && c.scale < 0.75) c.scale = 0.95;
    this.view.redraw();
  }

  private gestures(canvas: HTMLCanvasElement): void {
    const down = new Map<number, [number, number]>();
    let moved = 0;
    const at = (e: { clientX: number; clientY: number }): [number, number] => {
      const box = canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      down.set(e.pointerId, at(e));
      if (down.size === 1) moved = 0;
    });
    canvas.addEventListener("pointermove", (e) => {
      const before = down.get(e.pointerId), now = at(e);
      if (!before) { this.hover(...now); return; }
      if (down.size === 2) { // two fingers
        const other = [...down].find(([id]) => id !== e.pointerId)?.[1] as [number, number];
        const d0 = Math.hypot(before[0] - other[0], before[1] - other[1]), d1 = Math.hypot(now[0] - other[0], now[1] - other[1]);
        if (d0 > 0) this.view.zoom(d1 / d0, (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else {
        const c = this.view.camera;
        c.x -= (now[0] - before[0]) / c.scale;
        c.y -= (now[1] - before[1]) / c.scale;
        this.view.redraw();
      }
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      down.set(e.pointerId, now);
    });
    const up = (e: PointerEvent) => {
      if (!down.delete(e.pointerId) || moved > 5 || e.type === "pointercancel") return;
      const item = this.view.at(...at(e), this.open);
      this.select(item ?? -1);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => this.hover(-1e9, -1e9));
    canvas.addEventListener("dblclick", (e) => {
      const item = this.view.at(...at(e), this.open);
      if (item !== undefined && item < 0) void this.toggle(~item);
      else if (item !== undefined) this.centre(item);
    });
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      if (e.shiftKey || (!e.ctrlKey && Math.abs(e.deltaX) > Math.abs(e.deltaY))) {
        this.view.camera.x += (e.deltaX || e.deltaY) / this.view.camera.scale;
        this.view.redraw();
      } else this.view.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), ...at(e));
    }, { passive: false });
  }

  private hover(px: number, py: number): void {
    const item = px < -1e8 ? undefined : this.view.at(px, py, this.open);
    const now = item ?? -1;
    if (now === this.view.marks.hovered) return;
    this.view.marks.hovered = now;
    this.view.canvas.style.cursor = now === -1 ? "grab" : "pointer";
    this.view.canvas.title = now >= 0 ? this.tooltip(now) : "";
    this.view.redraw();
  }

  private tooltip(id: number): string {
    const r = this.model.nodes[id], at = r.source === null ? "" : `${this.model.place(id)}  ${this.model.doc.sources[r.source].text}`;
    const warning = this.view.marks.warnings.get(id);
    return [`%${id} ${this.model.titles[id]}`, r.type, r.attrs, r.scope && `in ${r.scope}`, at, warning].filter(Boolean).join("\n");
  }

  private keys(canvas: HTMLCanvasElement): void {
    canvas.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const c = this.view.camera, pan = 60 / c.scale;
      const moves: Record<string, () => void> = {
        "+": () => this.view.zoom(1.25), "=": () => this.view.zoom(1.25), "-": () => this.view.zoom(0.8), "0": () => this.view.fit(),
        Escape: () => { this.spread = "near"; this.select(-1); },
        Enter: () => { if (this.selected < -1) void this.toggle(~this.selected); else if (this.selected >= 0) this.centre(this.selected); },
        ArrowDown: () => this.step("down") || (c.y += pan), ArrowUp: () => this.step("up") || (c.y -= pan),
        ArrowLeft: () => this.step("left") || (c.x -= pan), ArrowRight: () => this.step("right") || (c.x += pan),
        o: () => { const s = this.selected >= 0 ? this.model.scopeOf[this.selected] : this.selected < -1 ? ~this.selected : 0; if (s > 0) { this.select(~s); void this.toggle(s); } },
        u: () => this.setSpread(this.spread === "upstream" ? "near" : "upstream"),
        d: () => this.setSpread(this.spread === "downstream" ? "near" : "downstream"),
        p: () => this.setSpread(this.spread === "paths" ? "near" : "paths"),
      };
      const move = moves[e.key];
      if (!move) return;
      e.preventDefault();
      move();
      this.view.redraw();
    });
  }

  /** Goes to the nearest box in a direction, by the eye: what a reader of a map would do. */
  private step(direction: "up" | "down" | "left" | "right"): boolean {
    if (this.selected === -1) { this.first(); return true; }
    const p = this.view.placed, from = this.view.box(this.selected >= 0 ? p?.stands[this.selected] ?? this.selected : this.selected);
    if (!p || !from) return false;
    const [cx, cy] = [from[0] + from[2] / 2, from[1] + from[3] / 2];
    let best: number | undefined, least = Infinity;
    const consider = (item: number) => {
      const box = this.view.box(item);
      if (!box || item === this.selected) return;
      const dx = box[0] + box[2] / 2 - cx, dy = box[1] + box[3] / 2 - cy;
      const [along, across] = direction === "up" ? [-dy, dx] : direction === "down" ? [dy, dx] : direction === "left" ? [-dx, dy] : [dx, dy];
      if (along <= 4) return;
      const cost = along + 3 * Math.abs(across);
      if (cost < least) { least = cost; best = item; }
    };
    for (let i = 0; i < p.x.length; i++) if (!Number.isNaN(p.x[i])) consider(i);
    for (let s = 1; s < p.sx.length; s++) if (!Number.isNaN(p.sx[s]) && !this.open[s]) consider(~s);
    if (best === undefined) return false;
    this.select(best);
    this.reveal(best);
    return true;
  }

  private first(): void {
    const p = this.view.placed;
    if (!p) return;
    for (let i = 0; i < p.x.length; i++) if (!Number.isNaN(p.x[i])) { this.select(i); this.reveal(i); return; }
    const s = [...p.sx].findIndex((x, i) => i > 0 && !Number.isNaN(x));
    if (s > 0) { this.select(~s); this.reveal(~s); }
  }

  reveal(item: number): void {
    const box = this.view.box(item);
    if (!box) return;
    const [x0, y0] = this.view.toScreen(box[0], box[1]), [x1, y1] = this.view.toScreen(box[0] + box[2], box[1] + box[3]);
    if (x0 < 20 || y0 < 20 || x1 > this.view.width - 20 || y1 > this.view.height - 20) this.centre(item, false);
  }
}

/** Gradients that are dead, exploding or vanishing, and values that are not finite. */
export function warnings(model: Model): Map<number, string> {
  const found = new Map<number, string>();
  for (const r of model.nodes) {
    const s = model.summary(r.id), v = model.number(r.id);
    if (s && (s.nan || s.inf || (v !== undefined && !Number.isFinite(v)))) {
      if (!model.folded[r.id]) found.set(r.id, v !== undefined ? `is ${show(v)}` : `${count(s.nan ?? 0, "NaN")}, ${count(s.inf ?? 0, "infinity").replace("infinitys", "infinities")}`);
    }
  }
  for (const { id, mark } of gradients(model)) if (mark) found.set(id, mark);
  if (model.doc.problem) found.set(model.doc.problem.node, model.doc.problem.title);
  return found;
}

export interface Gradient { id: number; norm: number | undefined; mark: string }

/** Inputs with gradients, the largest first, with what is suspicious about each. */
export function gradients(model: Model): Gradient[] {
  const listed = model.nodes.filter((r) => (r.role === "parameter" || r.role === "input") && r.gradient !== undefined && r.gradient !== null);
  const rms = (id: number, norm: number) => norm / Math.sqrt(model.summary(model.nodes[id].gradient)?.size ?? 1);
  const all = listed.map((r) => ({ id: r.id, norm: model.norm(r.gradient) }));
  const sizes = all.filter((g) => g.norm !== undefined && Number.isFinite(g.norm) && g.norm > 0).map((g) => rms(g.id, g.norm as number)).sort((a, b) => a - b);
  const middle = sizes[sizes.length >> 1];
  const mark = (id: number, norm: number | undefined): string => {
    if (norm === undefined) return "";
    if (!Number.isFinite(norm)) return "gradient is not finite";
    if (norm === 0) return "dead: the gradient is zero";
    const typical = rms(id, norm), ratio = typical / middle; // of one element
    if (norm > 1e4 || (typical > 10 && ratio > 1e3)) return "exploding: the gradient is very large";
    if (typical < 1e-8 || (sizes.length > 2 && ratio < 1e-3)) return "vanishing: the gradient is very small";
    return "";
  };
  const value = (n: number | undefined) => (n === undefined ? -1 : Number.isNaN(n) ? Infinity : n);
  return all.map((g) => ({ ...g, mark: mark(g.id, g.norm) })).sort((a, b) => value(b.norm) - value(a.norm) || a.id - b.id);
}
