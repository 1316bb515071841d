// Curves over steps, time or epochs: zoom by dragging, values under the pointer or by arrow keys.

import { button, make } from "./dom";
import { bytes, count, show } from "./text";

export interface Curve { name: string; colour: string; dash: string; x: number[]; y: number[]; breaks: number[] }
export interface Settings { axis: "step" | "time" | "epoch"; smoothing: number; range: [number, number] | null; whole: [number, number] | null }

const W = 560, H = 220, LEFT = 62, RIGHT = 10, TOP = 10, BOTTOM = 24, LISTED = 12;
const NAMED = 36; // characters of a caption that names its curves
let charts = 0;
const SVG = "http://www.w3.org/2000/svg";

export function duration(seconds: number): string {
  if (seconds < 100) return `${show(seconds, 3)} s`;
  return seconds < 6000 ? `${show(seconds / 60, 3)} min` : `${show(seconds / 3600, 3)} h`;
}

/** Round numbers from low to high, about so many. */
export function ticks(low: number, high: number, about: number): number[] {
  const raw = (high - low) / about;
  if (!(raw > 0)) return [low];
  const unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= raw) ?? raw;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && found.length < 50; k++) found.push(k * step);
  return found;
}

/** Powers of ten from 10^low to 10^high; of few decades twice and five times these, too. */
function decades(low: number, high: number): number[] {
  if (high - low > 2.5) return ticks(low, high, 5).filter(Number.isInteger).map((k) => 10 ** k);
  const found = [];
  for (let k = Math.floor(low); k <= high; k++) for (const m of [1, 2, 5]) found.push(Number(`${m}e${k}`));
  return found.filter((v) => Math.log10(v) >= low && Math.log10(v) <= high);
}

/** An exponential average that begins with the first value; what is not finite stays as it is. */
export function smooth(y: number[], weight: number): number[] {
  let sum = 0, mass = 0;
  return y.map((v) => {
    if (!Number.isFinite(v)) return v;
    sum = weight * sum + (1 - weight) * v;
    mass = weight * mass + (1 - weight);
    return sum / mass;
  });
}

/** Points of a path: of many in a column of pixels the lowest and highest. */
function thin(x: number[], y: number[]): [number, number][] {
  const most = 2 * W;
  if (x.length <= most) return x.map((v, i) => [v, y[i]]);
  const found: [number, number][] = [], each = x.length / W;
  for (let k = 0; k < W; k++) {
    const first = Math.floor(k * each), last = Math.floor((k + 1) * each);
    let low = first, high = first;
    for (let i = first; i < last; i++) { if (!(y[i] >= y[low])) low = i; if (!(y[i] <= y[high])) high = i; }
    for (const i of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) found.push([x[i], y[i]]);
  }
  found.push([x[x.length - 1], y[y.length - 1]]);
  return found;
}

export class Chart {
  readonly figure: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly now = make("span", { class: "now" });
  private readonly tip = make("div", { class: "tip" });
  private readonly clip = `plot${++charts}`;
  private curves: Curve[] = [];
  private px: (x: number) => number = () => 0;
  private py: (y: number) => number = () => 0;
  private span: [number, number] = [0, 1];
  private at: number | null = null;
  private near: number | null = null;
  private drag: number | null = null;

  constructor(readonly title: string, private readonly settings: Settings, private readonly zoomed: () => void, private readonly kind: "number" | "bytes" = "number", public log = false) {
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("tabindex", "0");
    const scale = button("log", `Logarithmic scale: ${title}`, () => { this.log = !this.log; scale.setAttribute("aria-pressed", String(this.log)); this.draw(); }, { "aria-pressed": String(log) });
    this.figure = make("figure", { class: "chart", "data-chart": title }, make("figcaption", {}, make("strong", { title }, title), this.now, scale), make("div", { class: "plot" }, this.svg, this.tip));
    this.tip.hidden = true;
    this.listen();
  }

  set(curves: Curve[]): void { this.curves = curves; this.draw(); }

  private text(y: number): string { return this.kind === "bytes" ? bytes(y) : show(y); }
  private where(x: number): string {
    const { axis } = this.settings;
    return axis === "time" ? duration(x) : `${axis} ${show(x, axis === "step" ? 9 : 4)}`;
  }

  private element(tag: string, attrs: Record<string, string | number>, text = "", parent: Element = this.svg): SVGElement {
    const e = document.createElementNS(SVG, tag) as SVGElement;
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, String(v));
    e.textContent = text;
    parent.append(e);
    return e;
  }

  /** What the line of a curve looks like. */
  private sample(c: Curve): SVGElement {
    const box = document.createElementNS(SVG, "svg");
    box.setAttribute("viewBox", "0 0 22 8");
    box.setAttribute("class", "line");
    this.element("path", { d: "M1 4H21", stroke: c.colour, "stroke-width": 2.4, "stroke-dasharray": c.dash }, "", box);
    return box;
  }

  private usable(v: number): boolean { return Number.isFinite(v) && (!this.log || v > 0); }

  draw(): void {
    const { range, smoothing } = this.settings, f = this.log ? Math.log10 : (v: number) => v;
    const drawn = this.curves.map((c) => ({ c, y: smoothing > 0 ? smooth(c.y, smoothing) : c.y }));
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const { c } of drawn) for (const v of c.x) if (Number.isFinite(v)) { x0 = Math.min(x0, v); x1 = Math.max(x1, v); }
    if (x0 !== Infinity && (range ?? this.settings.whole)) [x0, x1] = (range ?? this.settings.whole) as [number, number];
    for (const { c, y } of drawn) c.x.forEach((x, i) => { if (x >= x0 && x <= x1 && this.usable(y[i])) { y0 = Math.min(y0, f(y[i])); y1 = Math.max(y1, f(y[i])); } });
    this.svg.replaceChildren();
    const last = this.curves.filter((c) => c.y.length).map((c) => `${this.curves.length > 1 ? `${c.name} ` : ""}${this.text(c.y[c.y.length - 1])}`);
    this.now.replaceChildren(...(last.length > 3 || last.join(" ").length > NAMED ? [count(last.length, "curve")] : this.curves.filter((c) => c.y.length).map((c, i) => make("span", {}, this.sample(c), last[i]))));
    this.svg.setAttribute("aria-label", `${this.title}: ${last.slice(0, 3).join(", ") || "nothing here"}. Arrow keys read values, plus and minus zoom.`);
    if (x0 === Infinity) return;
    const empty = y0 === Infinity;
    if (empty) { y0 = 0; y1 = 1; }
    if (y1 - y0 <= 1e-12 * Math.max(Math.abs(y0), Math.abs(y1))) { const room = this.log ? 0.5 : 0.5 * Math.abs(y0) || 0.5; y0 -= room; y1 += room; }
    if (x0 === x1) x1 = x0 + 1;
    const pad = 0.04 * (y1 - y0);
    y0 -= pad; y1 += pad;
    this.span = [x0, x1];
    this.px = (x) => LEFT + ((x - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
    this.py = (y) => TOP + (1 - (f(y) - y0) / (y1 - y0)) * (H - BOTTOM - TOP);
    const inside = this.element("clipPath", { id: this.clip });
    this.element("rect", { x: LEFT, y: TOP - 2, width: W - LEFT - RIGHT, height: H - BOTTOM - TOP + 4 }, "", inside);
    this.axes(x0, x1, y0, y1);
    if (empty) this.element("text", { x: W / 2, y: H / 2, "text-anchor": "middle" }, this.log ? "nothing above 0 to draw" : "nothing finite to draw");
    const marked = new Set<number>();
    for (const { c, y } of drawn) {
      if (smoothing > 0) this.path(c, c.y, "curve raw");
      this.path(c, y, "curve");
      for (const b of c.breaks) if (b >= x0 && b <= x1 && !marked.has(b)) {
        marked.add(b);
        const mark = this.element("line", { x1: this.px(b), x2: this.px(b), y1: TOP, y2: H - BOTTOM, class: "break" });
        this.element("title", {}, `the run went on from here (${this.where(b)})`, mark);
      }
      c.x.forEach((x, i) => { if (!Number.isFinite(c.y[i]) && x >= x0 && x <= x1) this.element("line", { x1: this.px(x), x2: this.px(x), y1: TOP, y2: H - BOTTOM, class: "bad" }); });
    }
    this.hover();
  }

  private axes(x0: number, x1: number, y0: number, y1: number): void {
    const marks = !this.log ? ticks(y0, y1, 4) : y1 - y0 < 0.5 ? ticks(10 ** y0, 10 ** y1, 4).filter((v) => v > 0) : decades(y0, y1);
    for (const v of marks) {
      const y = this.py(v);
      if (y < TOP - 1 || y > H - BOTTOM + 1) continue;
      this.element("line", { x1: LEFT, x2: W - RIGHT, y1: y, y2: y, class: "grid" });
      this.element("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.kind === "bytes" ? bytes(v) : show(v, 3));
    }
    const { axis } = this.settings, unit = axis === "time" ? (x1 < 100 ? 1 : x1 < 6000 ? 60 : 3600) : 1;
    const found = ticks(x0 / unit, x1 / unit, 5);
    found.forEach((v, k) => {
      const x = this.px(v * unit), name = k < found.length - 1 ? "" : axis === "time" ? { 1: " s", 60: " min", 3600: " h" }[unit] : "";
      this.element("text", { x: Math.min(Math.max(x, LEFT), W - RIGHT - 6), y: H - 7, "text-anchor": "middle" }, show(v, 7) + name);
      this.element("line", { x1: x, x2: x, y1: H - BOTTOM, y2: H - BOTTOM + 4, class: "grid" });
    });
  }

  private path(c: Curve, y: number[], kind: string): void {
    let d = "", pen = false, points = 0, end: [number, number] = [0, 0], before = -Infinity;
    const stops = [...c.breaks], [x0, x1] = this.span;
    let from = 0, to = c.x.length;
    while (from < to - 1 && c.x[from + 1] < x0) from++;
    while (to > from + 1 && c.x[to - 2] > x1) to--;
    for (const [x, v] of thin(c.x.slice(from, to), y.slice(from, to))) {
      if (!this.usable(v) || !Number.isFinite(x)) { pen = false; continue; }
      if (stops.some((b) => before <= b && b < x && before > -Infinity)) pen = false; // a run that went on
      before = x;
      end = [this.px(x), this.py(v)];
      d += `${pen ? "L" : "M"}${end[0].toFixed(1)} ${end[1].toFixed(1)}`;
      pen = true; points++;
    }
    const line = this.element("path", { d, class: kind, fill: "none", stroke: c.colour, "stroke-dasharray": c.dash, "clip-path": `url(#${this.clip})` });
    this.element("title", {}, c.name, line);
    if (points === 1) this.element("circle", { cx: end[0], cy: end[1], r: 3, fill: c.colour });
  }

  // -- pointer and keys -------------------------------------------------------------------------
  private toX(e: PointerEvent | MouseEvent): number {
    const box = this.svg.getBoundingClientRect(), [x0, x1] = this.span;
    const share = (((e.clientX - box.left) / box.width) * W - LEFT) / (W - LEFT - RIGHT);
    return x0 + Math.min(Math.max(share, 0), 1) * (x1 - x0);
  }

  private listen(): void {
    const { svg } = this;
    svg.addEventListener("pointermove", (e) => {
      this.at = this.toX(e);
      const box = svg.getBoundingClientRect();
      this.near = ((e.clientY - box.top) / box.height) * H;
      this.hover();
    });
    svg.addEventListener("pointerleave", () => { if (this.drag === null) { this.at = null; this.hover(); } });
    svg.addEventListener("pointerdown", (e) => { if (e.button === 0 && e.pointerType !== "touch") { this.drag = this.toX(e); svg.setPointerCapture(e.pointerId); } });
    svg.addEventListener("pointerup", (e) => {
      const from = this.drag, to = this.toX(e);
      this.drag = null;
      if (from !== null && Math.abs(this.px(from) - this.px(to)) > 6) this.zoom([Math.min(from, to), Math.max(from, to)]);
    });
    svg.addEventListener("dblclick", () => this.zoom(null));
    svg.addEventListener("blur", () => { this.at = null; this.hover(); });
    svg.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const [x0, x1] = this.span, mid = this.at ?? (x0 + x1) / 2, act: Record<string, () => void> = {
        ArrowLeft: () => this.walk(-1), ArrowRight: () => this.walk(1), Home: () => this.walk(-Infinity), End: () => this.walk(Infinity),
        "+": () => this.zoom([mid - (x1 - x0) / 4, mid + (x1 - x0) / 4]), "-": () => this.zoom([mid - (x1 - x0), mid + (x1 - x0)]), "0": () => this.zoom(null),
      };
      if (!act[e.key]) return;
      e.preventDefault();
      act[e.key]();
    });
  }

  private zoom(range: [number, number] | null): void { this.settings.range = range; this.zoomed(); }

  /** To the next point of any curve, that way. */
  private walk(way: number): void {
    const [x0, x1] = this.span, all = [...new Set(this.curves.flatMap((c) => c.x))].filter((x) => x >= x0 && x <= x1).sort((a, b) => a - b);
    if (!all.length) return;
    const at = this.at, here = at === null ? (way > 0 ? -1 : all.length) : all.findIndex((x) => x >= at);
    const next = way === -Infinity ? 0 : way === Infinity ? all.length - 1 : Math.min(Math.max((here < 0 ? all.length : here) + way, 0), all.length - 1);
    this.at = all[next];
    this.near = null;
    this.hover();
    this.svg.setAttribute("aria-label", `${this.title}. ${this.tip.innerText}`);
  }

  private hover(): void {
    this.svg.querySelector(".cross")?.remove();
    const at = this.at;
    this.tip.hidden = at === null;
    if (at === null) return;
    const cross = this.element("g", { class: "cross" });
    if (this.drag !== null) {
      const a = this.px(this.drag), b = this.px(at);
      this.element("rect", { x: Math.min(a, b), y: TOP, width: Math.abs(b - a), height: H - BOTTOM - TOP, class: "zoom" }, "", cross);
    }
    const found: { c: Curve; x: number; y: number }[] = [];
    for (const c of this.curves) {
      const i = nearest(c.x, at);
      if (i >= 0) found.push({ c, x: c.x[i], y: c.y[i] });
    }
    this.element("line", { x1: this.px(at), x2: this.px(at), y1: TOP, y2: H - BOTTOM }, "", cross);
    const near = this.near;
    if (found.length > LISTED && near !== null) found.sort((a, b) => Math.abs(this.py(a.y) - near) - Math.abs(this.py(b.y) - near));
    const listed = found.slice(0, LISTED);
    for (const { c, x, y } of listed) if (this.usable(y)) this.element("circle", { cx: this.px(x), cy: this.py(y), r: 3.2, fill: c.colour }, "", cross);
    this.tip.replaceChildren(make("div", { class: "place" }, this.where(listed.length === 1 ? listed[0].x : this.settings.axis === "step" ? Math.round(at) : at)), ...listed.map(({ c, y }) => {
      const chip = make("i", {});
      chip.style.background = c.colour;
      return make("div", {}, chip, make("span", {}, c.name), make("b", {}, this.text(y)));
    }), found.length > LISTED ? make("div", { class: "place" }, `and ${found.length - LISTED} more`) : "");
    const share = this.px(at) / W;
    this.tip.style.left = share < 0.5 ? `${share * 100 + 3}%` : "";
    this.tip.style.right = share < 0.5 ? "" : `${(1 - share) * 100 + 3}%`;
  }
}

/** The place of the point nearest to x, of points in order; -1 of none. */
function nearest(xs: number[], x: number): number {
  if (!xs.length) return -1;
  let low = 0, high = xs.length - 1;
  while (low < high) { const mid = (low + high) >> 1; if (xs[mid] < x) low = mid + 1; else high = mid; }
  return low > 0 && Math.abs(xs[low - 1] - x) < Math.abs(xs[low] - x) ? low - 1 : low;
}
