// A training run as it goes: curves of what is logged, norms and histograms of what was given.

import { button, make } from "./dom";
import { histogram } from "./details";
import type { Num, Summary } from "./types";
import { count, show, toNumber } from "./text";

interface Event_ { step: number; time: number; scalars?: Record<string, Num>; norms?: Record<string, Num>; summaries?: Record<string, Summary>; message?: string; state?: string }
interface Data { format: string; title: string; events: Event_[]; controls: string[]; next: number }

const W = 560, H = 200, LEFT = 58, BOTTOM = 22;

class Chart {
  readonly figure: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly caption: HTMLElement;
  private readonly series = new Map<string, [number, number][]>();
  private dirty = true;
  log = false;

  constructor(title: string) {
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    this.svg.setAttribute("role", "img");
    this.caption = make("span", { class: "now" });
    const scale = button("log", "Logarithmic scale", () => { this.log = !this.log; scale.setAttribute("aria-pressed", String(this.log)); this.dirty = true; this.draw(); }, { "aria-pressed": "false" });
    this.figure = make("figure", { class: "chart", "data-chart": title }, make("figcaption", {}, make("strong", {}, title), this.caption, scale), this.svg);
  }

  add(name: string, step: number, value: number): void {
    const known = this.series.get(name);
    if (known) known.push([step, value]); else this.series.set(name, [[step, value]]);
    this.dirty = true;
  }

  draw(): void {
    if (!this.dirty) return;
    this.dirty = false;
    const usable = (v: number) => Number.isFinite(v) && (!this.log || v > 0), f = this.log ? Math.log10 : (v: number) => v;
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity, points = 0;
    for (const s of this.series.values()) for (const [x, y] of s) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); if (usable(y)) { y0 = Math.min(y0, f(y)); y1 = Math.max(y1, f(y)); points++; } }
    this.svg.replaceChildren();
    const last = [...this.series].map(([n, s]) => `${this.series.size > 1 ? `${n} ` : ""}${show(s[s.length - 1][1])}`);
    this.caption.textContent = last.length <= 3 ? last.join("  ") : count(last.length, "curve");
    this.svg.setAttribute("aria-label", `${this.figure.dataset.chart}: ${last.slice(0, 3).join(", ")}`);
    if (!points) return;
    if (y0 === y1) { const room = 0.5 * Math.abs(y0) || 0.5; y0 -= room; y1 += room; }
    if (x0 === x1) x1 = x0 + 1;
    const px = (x: number) => LEFT + ((x - x0) / (x1 - x0)) * (W - LEFT - 8), py = (y: number) => 8 + (1 - (f(y) - y0) / (y1 - y0)) * (H - BOTTOM - 8);
    const element = (tag: string, attrs: Record<string, string | number>, text = "") => {
      const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, String(v));
      e.textContent = text;
      this.svg.append(e);
      return e;
    };
    for (let k = 0; k <= 3; k++) {
      const v = y0 + ((y1 - y0) * k) / 3, y = 8 + (1 - k / 3) * (H - BOTTOM - 8);
      element("line", { x1: LEFT, x2: W - 8, y1: y, y2: y, class: "grid" });
      element("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, show(this.log ? 10 ** v : v, 3));
    }
    for (const [x, anchor] of [[x0, "start"], [x1, "end"]] as const) element("text", { x: px(x), y: H - 6, "text-anchor": anchor }, String(x));
    [...this.series].forEach(([name, s], i) => {
      const stride = Math.max(1, Math.ceil(s.length / (2 * W)));
      let d = "", pen = false;
      s.forEach(([x, y], k) => { if (k % stride && k < s.length - 1) return; if (!usable(y)) { pen = false; return; } d += `${pen ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`; pen = true; });
      const line = element("path", { d, class: "curve", fill: "none" });
      line.style.stroke = `hsl(${(212 + i * 137.5) % 360} 65% 50%)`;
      const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
      title.textContent = name;
      line.append(title);
      if (s.length === 1 && usable(s[0][1])) element("circle", { cx: px(s[0][0]), cy: py(s[0][1]), r: 3 }).style.fill = line.style.stroke;
      for (const [x, y] of s) if (!Number.isFinite(y)) element("line", { x1: px(x), x2: px(x), y1: 8, y2: H - BOTTOM, class: "bad" });
    });
  }
}

export function dashboard(data: Data, root: HTMLElement): void {
  const charts = new Map<string, Chart>(), latest = new Map<string, Summary>();
  const grid = make("div", { class: "charts" }), hists = make("div", { class: "hists" }), messages = make("ol", { class: "messages", "aria-label": "Messages" });
  const status = make("p", { class: "stats", role: "status" }, "waiting for the first step");
  const controls = make("div", { class: "tools", role: "toolbar", "aria-label": "Control" });
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const names: Record<string, [string, string]> = { stop: ["Stop", "Stop after this step"], checkpoint: ["Checkpoint", "Save a checkpoint after this step"] };
  for (const c of data.controls) {
    const [text, title] = names[c] ?? [c, c];
    const b = button(text, title, () => {
      b.disabled = true;
      void fetch(`control?token=${encodeURIComponent(token)}`, { method: "POST", body: c }).then((r) => { status.textContent = r.ok ? `${text} was asked for` : `the run refused: ${r.status}`; }, () => { status.textContent = "the run cannot be reached"; })
        .finally(() => { if (c !== "stop") b.disabled = false; });
    });
    controls.append(b);
  }
  root.classList.add("dashboard");
  root.append(make("header", {}, make("h1", {}, data.title), status, controls), make("main", { class: "board" }, grid, make("h2", {}, "Histograms"), hists, make("h2", {}, "Messages"), messages));
  const chart = (name: string): Chart => {
    let c = charts.get(name);
    if (!c) { c = new Chart(name); charts.set(name, c); grid.append(c.figure); }
    return c;
  };
  let seen = -1, ended = false;
  let first: Event_ | undefined, frame = 0;
  const draw = () => {
    frame = 0;
    for (const c of charts.values()) c.draw();
    hists.replaceChildren(...[...latest].slice(0, 60).map(([name, s]) => make("figure", { "data-hist": name }, make("figcaption", {}, name, make("small", {}, s.norm === undefined ? "" : ` ‖·‖ ${show(s.norm)}`)),
      s.hist && s.hist.length > 1 ? histogram(s.hist, s.min as number, s.max as number, name.startsWith("∂")) : make("p", {}, s.data ? s.data.map((x) => show(toNumber(x))).join(", ") : "constant"))));
  };
  const take = (e: Event_) => {
    for (const [name, v] of Object.entries(e.scalars ?? {})) chart(name).add(name, e.step, toNumber(v));
    for (const [name, v] of Object.entries(e.norms ?? {})) chart("gradient norms").add(name, e.step, toNumber(v));
    for (const [name, s] of Object.entries(e.summaries ?? {})) latest.set(name, s);
    if (e.message) messages.prepend(make("li", {}, e.message));
    if (e.state === "ended") ended = true;
    if (e.scalars || e.norms) {
      if (!first) first = e;
      else if (e.time - first.time >= 0.5 && e.step > first.step) { // over a while: single steps tell of the clock
        chart("steps per second").add("steps per second", e.step, (e.step - first.step) / (e.time - first.time));
        first = e;
      }
      seen = e.step;
    }
    status.textContent = ended ? `ended after step ${seen}` : seen < 0 ? "waiting for the first step" : `step ${seen}`;
    frame ||= requestAnimationFrame(draw);
  };
  for (const e of data.events) take(e);
  document.documentElement.dataset.ready = "1";
  if (!location.protocol.startsWith("http") || !token) return;
  const events = new EventSource(`events?token=${encodeURIComponent(token)}&from=${data.next}`);
  events.addEventListener("log", (e) => take(JSON.parse((e as MessageEvent<string>).data) as Event_));
  events.addEventListener("bye", () => { events.close(); ended = true; status.textContent = `ended after step ${seen}`; for (const b of controls.querySelectorAll("button")) b.disabled = true; });
  events.onerror = () => { if (!ended) status.textContent = "the run cannot be reached"; };
}
