// Training runs over each other: curves of what was logged, norms of each parameter, texts,
// memory, histograms. Fed by the server of a run that goes on, or by a folder of runs.

import "./dashboard.css";
import { Chart, type Curve, type Settings } from "./chart";
import { histogram } from "./details";
import { button, make } from "./dom";
import { Run, type Point, type RunEvent } from "./run";
import { count, show, toNumber } from "./text";

interface Data { format: string; title: string; runs: { name: string; events?: RunEvent[] }[]; controls: string[]; next: number }

// Okabe and Ito's colours, which the colour-blind tell apart; on dark paper lighter ones.
const COLOURS = 7;
const DASHES = ["", "1.5 2.5", "8 2.5 1.5 2.5"]; // of the first runs, and of those whose colours are used again
const AT_ONCE = 6; // runs that are drawn at first
const TEXTS = 30, HISTOGRAMS = 60;
const REDRAWN = 500; // milliseconds between drawings of a run that goes on
const NORMS: [string, string][] = [["gradient", "gradient norms"], ["update", "update norms"], ["ratio", "update / weight"], ["weight", "weight norms"]];

function colour(run: Run): string { return `var(--run${run.place % COLOURS})`; }
function dash(run: Run): string { return DASHES[Math.floor(run.place / COLOURS) % DASHES.length]; }

/** From dark to light (viridis), so that early and late layers can be told apart. */
function depth(share: number): string {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [222, 196, 37]];
  const dark = document.documentElement.dataset.theme === "dark", t = (dark ? 0.36 + 0.64 * share : 0.95 * share) * (stops.length - 1);
  const i = Math.min(Math.floor(t), stops.length - 2), f = t - i;
  return `rgb(${stops[i].map((v, k) => Math.round(v + (stops[i + 1][k] - v) * f)).join(" ")})`;
}

class Dashboard {
  private readonly runs = new Map<string, Run>();
  private readonly charts = new Map<string, Chart>();
  private readonly settings: Settings = { axis: "step", smoothing: 0, range: null, whole: null };
  private readonly grid = make("div", { class: "charts" });
  private readonly layers = make("div", { class: "charts" });
  private readonly texts = make("div", { class: "texts" });
  private readonly hists = make("div", { class: "hists" });
  private readonly messages = make("ol", { class: "messages", "aria-label": "Messages" });
  private readonly list = make("ul", { class: "runs" });
  private readonly status = make("p", { class: "stats", role: "status" }, "waiting for the first step");
  private readonly controls = make("div", { class: "tools", role: "toolbar", "aria-label": "Control" });
  private readonly whose = make("select", { "aria-label": "Parameters of" });
  private readonly filter = make("input", { type: "search", placeholder: "layers, such as attention", "aria-label": "Only parameters whose names have" });
  private readonly unzoom: HTMLButtonElement;
  private readonly sections: Record<string, HTMLElement> = {};
  private readonly token = new URLSearchParams(location.search).get("token") ?? "";
  private frame = 0;
  private ended = false;

  constructor(private readonly data: Data, private readonly root: HTMLElement) {
    this.unzoom = button("Whole range", "Show the whole range (0)", () => { this.settings.range = null; this.draw(); });
    this.unzoom.hidden = true;
    data.runs.forEach((r, i) => this.known(r.name, i));
    data.runs.forEach((r) => { if (r.events) this.fill(this.known(r.name), r.events); });
    this.build();
    const first = data.runs.some((r) => r.events?.length) ? data.runs.filter((r) => r.events) : data.runs.slice(-AT_ONCE);
    for (const r of first) this.choose(this.known(r.name), true);
    this.listRuns();
    this.draw();
    document.documentElement.dataset.ready = "1";
    this.listen();
  }

  private known(name: string, place = this.runs.size): Run {
    let run = this.runs.get(name);
    if (!run) { run = new Run(name, place); this.runs.set(name, run); }
    return run;
  }

  private fill(run: Run, events: RunEvent[]): void {
    run.clear();
    for (const e of events) run.take(e);
    run.loaded = true;
  }

  /** Show a run, or not; one that is not here yet is asked for. */
  private choose(run: Run, shown: boolean): void {
    run.shown = shown;
    if (shown && !run.loaded && this.token) void this.ask(run);
    this.later();
  }

  private async ask(run: Run): Promise<void> {
    try {
      const answer = await fetch(`data?token=${encodeURIComponent(this.token)}&name=${encodeURIComponent(run.name)}`);
      if (answer.ok) {
        const found = (await answer.json()) as { events: RunEvent[]; count: number };
        this.fill(run, found.events);
        run.count = found.count;
      }
      else this.status.textContent = `${run.name} cannot be read: ${answer.status}`;
    } catch { this.status.textContent = "the run cannot be reached"; }
    this.listRuns();
    this.later();
  }

  // -- the page ---------------------------------------------------------------------------------
  private build(): void {
    const { settings } = this;
    const axis = make("select", { "aria-label": "Horizontal axis" }, ...(["step", "time", "epoch"] as const).map((a) => make("option", { value: a }, `by ${a}`)));
    axis.addEventListener("change", () => { settings.axis = axis.value as Settings["axis"]; settings.range = null; this.draw(); });
    const shown = make("output", {}, "0"), weight = make("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: "0", "aria-label": "Smoothing" });
    weight.addEventListener("input", () => { settings.smoothing = Number(weight.value); shown.textContent = weight.value; this.draw(); });
    const dark = button("◐", "Light or dark (t)", () => this.flip());
    const view = make("div", { class: "tools", role: "toolbar", "aria-label": "View" }, axis, make("label", { class: "smoothing" }, "smoothing", weight, shown), this.unzoom, dark);
    this.buttons();
    const { data, root } = this;
    root.classList.add("dashboard");
    root.append(make("header", {}, make("h1", { title: data.title }, data.title), this.status, this.controls, view));
    const board = make("main", { class: "board" });
    const section = (key: string, title: string, ...content: Node[]) => {
      const box = make("section", { "aria-label": title, hidden: "" }, make("h2", {}, title), ...content);
      this.sections[key] = box;
      board.append(box);
    };
    board.append(this.list, make("p", { class: "hint" }, "Drag over a chart to zoom, double-click for the whole range; focus one and use the arrow keys to read values, + − 0 to zoom."), this.grid);
    this.whose.addEventListener("change", () => this.draw());
    this.filter.addEventListener("input", () => this.later());
    section("parameters", "Parameters", make("p", { class: "row" }, this.whose, this.filter), this.layers);
    section("texts", "Texts sampled", this.texts);
    section("histograms", "Histograms", this.hists);
    section("messages", "Messages", this.messages);
    root.append(board);
    document.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || (e.target as HTMLElement).closest("input, select")) return;
      if (e.key === "t") this.flip();
      if (e.key === "0" && settings.range) { settings.range = null; this.draw(); }
    });
  }

  private flip(): void {
    const { dataset } = document.documentElement;
    dataset.theme = dataset.theme === "dark" ? "light" : "dark";
    this.draw();
  }

  private buttons(): void {
    const names: Record<string, [string, string]> = { stop: ["Stop", "Stop after this step"], checkpoint: ["Checkpoint", "Save a checkpoint after this step"] };
    for (const c of this.data.controls) {
      const [text, title] = names[c] ?? [c, c];
      const b = button(text, title, () => {
        b.disabled = true;
        void fetch(`control?token=${encodeURIComponent(this.token)}`, { method: "POST", body: c }).then((r) => { this.status.textContent = r.ok ? `${text} was asked for` : `the run refused: ${r.status}`; }, () => { this.status.textContent = "the run cannot be reached"; })
          .finally(() => { if (c !== "stop") b.disabled = false; });
      });
      this.controls.append(b);
    }
  }

  private listRuns(): void {
    const all = [...this.runs.values()];
    this.list.hidden = all.length < 2;
    this.list.replaceChildren(...all.map((run) => {
      const box = make("input", { type: "checkbox" }), line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      box.checked = run.shown;
      box.addEventListener("change", () => this.choose(run, box.checked));
      line.setAttribute("viewBox", "0 0 26 8");
      line.setAttribute("aria-hidden", "true");
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
      for (const [k, v] of Object.entries({ d: "M1 4H25", stroke: colour(run), "stroke-width": "3", "stroke-dasharray": dash(run) })) mark.setAttribute(k, v);
      line.append(mark);
      const loss = run.series.get("loss"), end = loss ? `loss ${show(loss[loss.length - 1].value)}` : "";
      return make("li", {}, make("label", {}, box, line, make("span", {}, run.name), make("small", {}, run.loaded && run.step >= 0 ? `step ${run.step}  ${end}` : "")));
    }));
    if (all.length > 2) this.list.append(make("li", {}, button("all", "Show all runs", () => this.every(true)), button("none", "Show no run", () => this.every(false))));
  }

  private every(shown: boolean): void { for (const run of this.runs.values()) this.choose(run, shown); this.listRuns(); }

  // -- drawing ----------------------------------------------------------------------------------
  /** Draws soon; what comes in meanwhile is drawn with it, so that the page leaves the run its processor. */
  private later(wait = 0): void { this.frame ||= window.setTimeout(() => { this.frame = 0; this.draw(); }, wait); }

  private chart(title: string, where: HTMLElement, log = false): Chart {
    let c = this.charts.get(title);
    if (!c) {
      c = new Chart(title, this.settings, () => this.draw(), title === "memory" ? "bytes" : "number", log);
      this.charts.set(title, c);
      where.append(c.figure);
    }
    return c;
  }

  private place(run: Run, p: { step: number; time: number }): number {
    const { axis } = this.settings;
    return axis === "step" ? p.step : axis === "time" ? p.time : run.epoch(p.step);
  }

  private curve(run: Run, points: Point[], name: string, colour: string, dash: string): Curve {
    const place = (p: { step: number; time: number }) => this.place(run, p);
    return { name, colour, dash, x: points.map(place), y: points.map((p) => p.value), breaks: run.breaks.map(place) };
  }

  private draw(): void {
    const shown = [...this.runs.values()].filter((r) => r.shown && r.loaded);
    this.unzoom.hidden = this.settings.range === null;
    this.settings.whole = this.whole(shown);
    const found = new Map<string, Curve[]>();
    for (const run of shown) {
      for (const [name, points] of run.series) {
        if (name === "epoch_loss" && run.series.has("loss")) continue; // is what smoothing shows
        const held = name.startsWith("val_") || name === "planned memory";
        const title = name === "planned memory" ? "memory" : name.startsWith("val_") && (name !== "val_loss" || run.series.has("loss")) ? name.slice(4) : name;
        const label = shown.length > 1 ? (name === title ? run.name : `${run.name} ${name}`) : name;
        const curves = found.get(title) ?? [];
        curves.push(this.curve(run, points, label, held && shown.length === 1 ? "var(--run1)" : colour(run), held ? "6 3" : dash(run)));
        found.set(title, curves);
      }
    }
    const order = (title: string) => (title === "loss" ? 0 : ["learning rate", "memory"].includes(title) ? 2 : title.endsWith("per second") ? 3 : 1);
    const titles = [...found.keys()].sort((a, b) => order(a) - order(b));
    for (const title of titles) {
      const c = this.chart(title, this.grid);
      if (order(title) < 2) c.figure.style.order = String(order(title)); else c.figure.style.order = "2";
      c.set(found.get(title) as Curve[]);
    }
    for (const [title, c] of this.charts) if (c.figure.parentElement === this.grid) c.figure.hidden = !found.has(title);
    this.parameters(shown);
    this.sampled(shown);
    this.others(shown);
    if (!this.ended) this.status.textContent = this.progress(shown);
  }

  /** From where to where all curves reach, so that charts stand below each other. */
  private whole(shown: Run[]): [number, number] | null {
    let low = Infinity, high = -Infinity;
    for (const run of shown) {
      for (const all of [run.series, ...run.parameters.values()]) {
        for (const points of all.values()) for (const p of [points[0], points[points.length - 1]]) { const x = this.place(run, p); if (Number.isFinite(x)) { low = Math.min(low, x); high = Math.max(high, x); } }
      }
    }
    return low <= high ? [low, high] : null;
  }

  private progress(shown: Run[]): string {
    if (!shown.length) return "no run is shown";
    const step = Math.max(...shown.map((r) => r.step));
    return step < 0 ? "waiting for the first step" : shown.length > 1 ? count(shown.length, "run") : `step ${step}`;
  }

  private parameters(shown: Run[]): void {
    const having = shown.filter((r) => r.parameters.size);
    this.sections.parameters.hidden = !having.length;
    if (!having.length) return;
    const before = this.whose.value, names = having.map((r) => r.name);
    if ([...this.whose.options].map((o) => o.value).join("\n") !== names.join("\n")) {
      this.whose.replaceChildren(...names.map((n) => make("option", { value: n }, n)));
      if (names.includes(before)) this.whose.value = before;
    }
    this.whose.hidden = names.length < 2;
    const run = having.find((r) => r.name === this.whose.value) ?? having[0], words = this.filter.value.trim();
    for (const [kind, title] of NORMS) {
      const all = run.parameters.get(kind), c = all && this.chart(title, this.layers, true);
      const known = this.charts.get(title);
      if (known) known.figure.hidden = !all;
      if (!all || !c) continue;
      const chosen = [...all].filter(([name]) => name.includes(words)), last = Math.max(chosen.length - 1, 1);
      c.set(chosen.map(([name, points], i) => this.curve(run, points, name, depth(i / last), "")));
    }
  }

  private sampled(shown: Run[]): void {
    const having = shown.filter((r) => r.texts.length);
    this.sections.texts.hidden = !having.length;
    this.texts.replaceChildren(...having.map((run) => {
      const steps = new Map<number, string[]>();
      for (const { step, text } of run.texts) steps.set(step, [...(steps.get(step) ?? []), text]);
      const latest = [...steps].reverse().slice(0, TEXTS);
      return make("div", {}, having.length > 1 ? make("h3", {}, run.name) : "", make("dl", {}, ...latest.flatMap(([step, texts]) => [make("dt", {}, `step ${step}`), make("dd", {}, ...texts.map((t) => make("p", {}, t)))])));
    }));
  }

  private others(shown: Run[]): void {
    const run = shown.find((r) => r.name === this.whose.value && r.histograms.size) ?? shown.find((r) => r.histograms.size);
    this.sections.histograms.hidden = !run;
    const words = this.filter.value.trim(), chosen = [...(run?.histograms ?? [])].filter(([name]) => name.includes(words));
    this.hists.replaceChildren(...chosen.slice(0, HISTOGRAMS).map(([name, s]) => make("figure", { "data-hist": name }, make("figcaption", {}, name, make("small", {}, s.norm === undefined ? "" : ` ‖·‖ ${show(s.norm)}`)),
      s.hist && s.hist.length > 1 ? histogram(s.hist, s.min as number, s.max as number, name.startsWith("∂")) : make("p", {}, s.data ? s.data.map((x) => show(toNumber(x))).join(", ") : "constant"))));
    if (chosen.length > HISTOGRAMS) this.hists.append(make("p", { class: "hint" }, `and ${chosen.length - HISTOGRAMS} more: give a part of a name above`));
    const told = shown.flatMap((r) => r.messages.map((m) => (shown.length > 1 ? `${r.name}: ${m}` : m)));
    this.sections.messages.hidden = !told.length;
    this.messages.replaceChildren(...told.slice(-200).reverse().map((m) => make("li", {}, m)));
  }

  // -- news -------------------------------------------------------------------------------------
  private listen(): void {
    if (!location.protocol.startsWith("http") || !this.token) return;
    const events = new EventSource(`events?token=${encodeURIComponent(this.token)}&from=${this.data.next}`);
    const on = (name: string, act: (text: string) => void) => events.addEventListener(name, (e) => act((e as MessageEvent<string>).data));
    on("log", (text) => {
      const told = JSON.parse(text) as { run: string; first?: number; events: RunEvent[] }, isNew = !this.runs.has(told.run), run = this.known(told.run);
      if (isNew) { run.loaded = run.shown = true; }
      const known = told.first === undefined ? 0 : Math.max(run.count - told.first, 0); // those it was given when it asked
      if (run.loaded) for (const e of told.events.slice(known)) run.take(e);
      if (isNew) this.listRuns();
      this.later(REDRAWN);
    });
    on("anew", (text) => { const run = this.runs.get(JSON.parse(text) as string); if (run?.loaded) void this.ask(run); });
    on("runs", (text) => { for (const name of JSON.parse(text) as string[]) if (!this.runs.has(name)) this.choose(this.known(name), true); this.listRuns(); });
    on("behind", () => location.reload());
    on("bye", () => {
      events.close();
      this.ended = true;
      this.status.textContent = `ended after step ${Math.max(...[...this.runs.values()].map((r) => r.step))}`;
      for (const b of this.controls.querySelectorAll("button")) b.disabled = true;
    });
    events.onerror = () => { if (!this.ended) this.status.textContent = "the run cannot be reached"; };
  }
}

export function dashboard(data: Data, root: HTMLElement): void { new Dashboard(data, root); }
