// The state of the explorer: what is open, selected, highlighted; and the gestures that change it.

import { MODES, scheme, type Mode } from "./colour";
import { unchanged } from "./changes";
import type { Engine } from "./engine";
import type { Model } from "./model";
import { View } from "./view";
import { inline } from "./math";
import { count, show } from "./text";
import { gradientPath, isWeight } from "./weights";

const READING = 0.85; // the scale at which a picture opens that as a whole would be too small to read
const NEAR = 0.8; // the scale below which going to a node means coming nearer
const READABLE = 30; // boxes that a graph opens with, about

export type Spread = "near" | "gradient" | "upstream" | "downstream" | "paths";

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
  readonly onStep: (() => void)[] = [];
  private readonly live: HTMLElement;

  constructor(model: Model, engine: Engine, canvas: HTMLCanvasElement, live: HTMLElement) {
    this.model = model;
    this.live = live;
    this.open = new Uint8Array(model.scopes.length);
    this.open[0] = 1;
    this.engine = engine;
    engine.take(model);
    if (model.doc.compared && !unchanged(model)) this.mode = "change";
    else if (model.doc.differences) this.mode = "difference";
    else if (model.doc.rounding) this.mode = "digits lost";
    this.view = new View(canvas, model, scheme(model, this.mode));
    this.view.marks.warnings = warnings(model);
    if (model.nodes.length <= 160 && !model.lanes) this.open.forEach((_, s) => { this.open[s] = model.isCall(s) ? 0 : 1; });
    else this.openFew();
    new ResizeObserver(() => this.view.resize()).observe(canvas);
    this.gestures(canvas);
  }

  /** Opens what would otherwise show next to nothing. */
  private openFew(): void {
    const { scopes, unit, folded } = this.model;
    const members = (s: number) => scopes[s].children.length + scopes[s].nodes.filter((x) => unit[x] === x && !folded[x]).length;
    const lanes = this.model.lanes?.scopes;
    for (const s of lanes ?? []) this.open[s] = 1;
    let shown = (lanes ?? [0]).reduce((n, s) => n + members(s), 0), at = (lanes ?? [0]).flatMap((s) => scopes[s].children);
    while (at.length) { // outer scopes first, as long as the whole can still be read
      const next: number[] = [], alike = new Map<string, number[]>(); // such as the layers of a network: all or none
      for (const s of at.sort((a, b) => members(a) - members(b))) {
        if (this.model.isCall(s) || this.model.lanes?.closed.has(s)) continue;
        const key = `${scopes[s].parent} ${members(s)} ${scopes[s].call?.name ?? ""}`, known = alike.get(key);
        if (known) known.push(s); else alike.set(key, [s]);
      }
      for (const same of alike.values()) {
        const more = same.reduce((sum, s) => sum + members(s) - 1, 0);
        if (shown + more + 1 > READABLE) continue;
        shown += more;
        for (const s of same) { this.open[s] = 1; next.push(...scopes[s].children); }
      }
      at = next;
    }
  }

  async start(): Promise<void> {
    await this.layout();
    this.view.resize();
    this.view.fit();
    if (!this.view.legible && !this.model.lanes) this.near(this.model.losses[0] ?? this.model.doc.outputs[0]);
  }

  /** Goes so near to a node that its numbers can be read. */
  private near(id: number | undefined): void {
    if (id === undefined) return;
    this.view.camera.scale = READING;
    this.approach(id);
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

  /** Words, or the real names of operations and nodes. */
  setPlain(plain: boolean): void {
    this.model.setPlain(plain);
    this.view.redraw();
    this.announce(plain ? "operations in words" : "real names");
    for (const f of [...this.onOpen, ...this.onSelect]) f();
  }

  restyle(): void {
    this.view.restyle(scheme(this.model, this.mode));
    for (const f of this.onScheme) f();
  }

  /** Selects a box. What is `heard` already, for having the focus, is not announced. */
  select(item: number, heard = false): void {
    this.selected = item;
    if (isWeight(this.model, item)) { if (this.spread === "near") this.spread = "gradient"; } else if (this.spread === "gradient") this.spread = "near";
    this.view.marks.selected = item;
    this.view.marks.group = undefined;
    document.body.classList.toggle("selected", item !== -1);
    this.mark();
    if (heard) this.live.textContent = "";
    else if (item >= 0) this.announce(this.describe(item));
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
      : this.spread === "gradient" ? gradientPath(m, id)
      : this.spread === "upstream" ? m.reach([id], false)
      : this.spread === "downstream" ? m.reach([id], true) : m.paths(id);
    this.view.redraw();
  }

  describe(id: number): string {
    const m = this.model, r = m.nodes[id], v = m.number(id), g = m.second[id] ? undefined : m.number(r.gradient ?? -1);
    const from = r.inputs.length ? `from ${r.inputs.slice(0, 4).map((x) => m.label(x)).join(" and ")}` : "";
    return [m.titles[id], r.type, r.role, v === undefined ? "" : `value ${show(v)}`, g === undefined ? "" : `gradient ${show(g)}`, from, r.scope && `in ${r.scope}`].filter(Boolean).join(", ");
  }

  /** Opens what a node is in, selects it and brings it into sight. */
  async focus(id: number, zoom = true): Promise<void> {
    let changed = false;
    for (let s = this.model.scopeOf[id]; s > 0; s = this.model.scopes[s].parent) if (!this.open[s]) { this.open[s] = 1; changed = true; }
    if (changed) await this.layout(); else await this.ready;
    this.select(id);
    if (zoom && this.view.camera.scale < NEAR) this.approach(id); else this.reveal(id);
  }

  centre(item: number, zoom = true): void {
    const stands = item >= 0 ? this.view.placed?.stands[item] : item;
    const box = this.view.box(stands === undefined || stands === -1 ? item : stands) ?? this.view.box(item >= 0 ? this.model.unit[item] : item);
    if (!box) return;
    const c = this.view.camera;
    c.x = box[0] + box[2] / 2;
    c.y = box[1] + box[3] / 2;
    if (zoom && c.scale < NEAR) c.scale = 0.95;
    this.view.redraw();
  }

  /** The same, but what there is to see fills the window. */
  approach(item: number, zoom = true): void {
    this.centre(item, zoom);
    this.view.clamp();
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
    this.view.canvas.title = now >= 0 ? this.tooltip(now) : now < -1 ? this.scopeTip(~now) : "";
    this.view.redraw();
  }

  private scopeTip(id: number): string {
    const s = this.model.scopes[id], at = s.call?.source ?? null;
    const line = at === null ? "" : `${this.model.placeOf(at)}  ${this.model.doc.sources[at].text}`;
    return [s.path, s.call ? inline(s.call.formula) : "", line].filter(Boolean).join("\n");
  }

  private tooltip(id: number): string {
    const r = this.model.nodes[id], at = r.source === null ? "" : `${this.model.place(id)}  ${this.model.doc.sources[r.source].text}`;
    const warning = this.view.marks.warnings.get(id);
    return [this.model.plain ? this.model.titles[id] : `%${id} ${this.model.titles[id]}`, r.type, r.attrs, r.scope && `in ${r.scope}`, at, warning].filter(Boolean).join("\n");
  }

  clear(): void { this.spread = "near"; this.select(-1); }

  /** Opens or closes a scope, centres a node. */
  enter(): void {
    if (this.selected < -1) void this.toggle(~this.selected);
    else if (this.selected >= 0) this.centre(this.selected);
  }

  toggleAround(): void {
    const s = this.selected >= 0 ? this.model.scopeOf[this.selected] : this.selected < -1 ? ~this.selected : 0;
    if (s > 0) { this.select(~s); void this.toggle(s); }
  }

  /** How a row or a sentence calls a node, or a scope given as ~id. */
  name(item: number): string { return item < 0 ? this.model.scopes[~item].name : this.model.label(item); }

  /** The boxes that edges come from and go to, as they are drawn, from the left to the right. */
  neighbours(item: number): { from: number[]; to: number[] } {
    const p = this.view.placed, from = new Set<number>(), to = new Set<number>();
    const own = p && item >= 0 && p.stands[item] !== -1 ? p.stands[item] : item;
    for (const e of p ? this.view.edgesOf(own) : []) { if (p?.to[e] === own) from.add(p.from[e]); else to.add(p?.to[e] as number); }
    const left = (x: number) => this.view.box(x)?.[0] ?? 0, sorted = (found: Set<number>) => [...found].sort((a, b) => left(a) - left(b));
    return { from: sorted(from), to: sorted(to) };
  }

  private walk: { among: number[]; at: number } = { among: [], at: 0 };

  private arrive(item: number): void { this.select(item); this.reveal(item); }

  /** Goes along an edge: to a user or to an input, of the same pass where there is one. */
  along(forward: boolean): void {
    if (this.selected === -1) { this.first(); return; }
    const { from, to } = this.neighbours(this.selected), among = forward ? to : from, { second } = this.model;
    const pass = (x: number) => (x >= 0 ? second[x] : 0), own = pass(this.selected);
    const at = Math.max(0, among.findIndex((x) => pass(x) === own));
    if (!among.length) { this.announce(forward ? "nothing uses this" : "this has no inputs"); return; }
    this.walk = { among, at };
    this.arrive(among[at]);
  }

  /** Of the boxes between which the last walk along an edge chose, the next one. */
  sibling(by: number): void {
    const { among, at } = this.walk;
    if (among[at] !== this.selected || !among.length) { this.announce("go along an edge first, with j or k"); return; }
    this.walk.at = (at + by + among.length) % among.length;
    this.arrive(among[this.walk.at]);
  }

  /** From a forward node to the node that holds its gradient, and from a gradient node back. */
  across(): void {
    const r = this.model.nodes[this.selected], other = r && (this.model.second[r.id] ? this.model.nodes.find((x) => x.gradient === r.id)?.id ?? r.origin : r.gradient);
    if (other === undefined || other === null) this.announce("there is no gradient of this here"); else void this.focus(other, false);
  }

  /** The first input, or the loss. */
  end(last: boolean): void {
    const id = last ? this.model.losses[0] ?? this.model.doc.outputs[0] : this.model.doc.inputs[0];
    if (id === undefined) this.first(); else void this.focus(id, false);
  }

  /** Goes to the nearest box in a direction, by the eye: what a reader of a map would do. */
  step(direction: "up" | "down" | "left" | "right"): void {
    if (this.selected === -1) { this.first(); return; }
    const p = this.view.placed, from = this.view.box(this.selected >= 0 ? p?.stands[this.selected] ?? this.selected : this.selected);
    if (!p || !from) return;
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
    if (best === undefined) this.view.pan(direction); else this.arrive(best);
  }

  private first(): void {
    const p = this.view.placed;
    if (!p) return;
    for (let i = 0; i < p.x.length; i++) if (!Number.isNaN(p.x[i])) { this.arrive(i); return; }
    const s = [...p.sx].findIndex((x, i) => i > 0 && !Number.isNaN(x));
    if (s > 0) this.arrive(~s);
  }

  reveal(item: number): void {
    const box = this.view.box(item);
    if (!box) return;
    const [x0, y0] = this.view.toScreen(box[0], box[1]), [x1, y1] = this.view.toScreen(box[0] + box[2], box[1] + box[3]);
    if (x0 < 20 || y0 < 44 || x1 > this.view.width - 20 || y1 > this.view.height - 20) this.approach(item, false);
  }
}

/** Gradients that are dead, exploding or vanishing, and values that are not finite. */
export function warnings(model: Model): Map<number, string> {
  const found = new Map<number, string>();
  for (const r of model.nodes) {
    const s = model.summary(r.id), v = model.number(r.id);
    if (s && (s.nan || s.inf || (v !== undefined && !Number.isFinite(v)))) {
      if (!model.folded[r.id]) found.set(r.id, v !== undefined ? `is ${show(v)}` : [s.nan && count(s.nan, "NaN"), s.inf && count(s.inf, "infinity").replace("infinitys", "infinities")].filter(Boolean).join(", "));
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
