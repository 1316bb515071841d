// What is known of the selected node or scope.

import type { App, Spread } from "./app";
import { button, make } from "./dom";
import { heatMap } from "./heat";
import type { NodeRecord, Summary } from "./types";
import { isWeight, overTime } from "./weights";
import { named } from "./lesson";
import { inline, isSentence, typeset } from "./math";
import { bytes, count, fill, show, time, toNumber } from "./text";

export class Details {
  private readonly app: App;
  private readonly panel: HTMLElement;

  constructor(app: App, panel: HTMLElement) {
    this.app = app;
    this.panel = panel;
    app.onSelect.push(() => this.show());
    this.show();
  }

  show(): void {
    const { selected } = this.app;
    this.panel.replaceChildren();
    if (selected === -1) this.overview();
    else if (selected < 0) this.scope(~selected);
    else this.node(selected);
  }

  private fact(list: HTMLElement, name: string, ...value: (Node | string)[]): void {
    list.append(make("dt", {}, name), make("dd", {}, ...value));
  }

  private overview(): void {
    const { model } = this.app, doc = model.doc;
    this.panel.append(make("h2", {}, "Graph"));
    if (doc.problem) this.problem();
    if (doc.note) this.panel.append(make("p", { class: "hint" }, doc.note));
    const list = make("dl");
    this.fact(list, "nodes", `${model.nodes.filter((r) => r.computed).length.toLocaleString("en")}`);
    this.fact(list, "inputs", String(doc.inputs.length));
    this.fact(list, "outputs", String(doc.outputs.length));
    this.fact(list, "operations", model.counted(Object.entries(doc.ops), 10) || "none");
    this.panel.append(list, this.names(), make("p", { class: "hint" },
      "Click a node to read it. Double-click a scope to open or close it. Drag to move, wheel to zoom; the keys are under “?”."));
    if (doc.outputs.length) {
      this.panel.append(make("h3", {}, "Outputs"));
      this.panel.append(this.links([...new Set(doc.outputs)].slice(0, 40), (id) => model.nodes[id].outputs.map((k) => doc.output_names[k]).filter(Boolean).join(", ") || model.titles[id]));
    }
  }

  /** The switch between names that a reader of mathematics knows, and the real ones. */
  private names(): HTMLElement {
    const { app } = this, row = make("div", { class: "segments", role: "group", "aria-label": "Names" });
    for (const [plain, text, title] of [[true, "Words", "Operations in words, nodes by the variables of your program"], [false, "Real names", "Operations and nodes as print(graph) calls them"]] as const) {
      row.append(button(text, title, () => app.setPlain(plain), { "aria-pressed": String(app.model.plain === plain) }));
    }
    return row;
  }

  private problem(): void {
    const p = this.app.model.doc.problem;
    if (!p) return;
    this.panel.append(make("div", { class: "problem", role: "alert" },
      make("strong", {}, p.title), make("p", {}, p.text), p.remedy && make("p", {}, p.remedy),
      button("Show the node", "Show the node", () => void this.app.focus(p.node))));
  }

  private scope(id: number): void {
    const { model } = this.app, s = model.scopes[id];
    this.panel.append(make("h2", {}, s.path.includes("⟨") || s.path.includes("(") ? s.name : s.path));
    if (s.call?.formula) this.panel.append(typeset(s.call.formula));
    const list = make("dl");
    if (s.call) this.fact(list, s.path.endsWith(")") ? "function" : "module", s.call.name);
    if (s.path.endsWith(")")) this.fact(list, "scope", s.path);
    this.fact(list, "nodes", s.count.toLocaleString("en"));
    if (s.backward) this.fact(list, "of these", `${s.forward} forward, ${s.backward} backward`);
    const inside = (n: number): boolean => { for (let x = n; x >= 0; x = model.scopes[x].parent) if (x === id) return true; return false; };
    const ops = new Map<string, number>();
    const within = model.scopes.map((x) => inside(x.id));
    for (const r of model.nodes) if (within[model.scopeOf[r.id]] && !model.folded[r.id]) ops.set(r.op, (ops.get(r.op) ?? 0) + 1);
    this.fact(list, "operations", model.counted(ops, 12));
    this.panel.append(list);
    this.source(s.call?.source ?? null);
    this.panel.append(button(this.app.open[id] ? "Close" : "Open", "Open or close this scope", () => void this.app.toggle(id).then(() => this.show())));
  }

  private node(id: number): void {
    const { model } = this.app, r = model.nodes[id], doc = model.doc;
    this.panel.append(make("h2", {}, model.titles[id]));
    if (doc.problem?.node === id) this.problem();
    const warning = this.app.view.marks.warnings.get(id);
    if (warning && doc.problem?.node !== id) this.panel.append(make("p", { class: "warning" }, warning));
    if (r.change && r.change !== "same") this.panel.append(make("p", { class: `change ${r.change}` }, r.change + (r.was ? `; it was ${r.was}` : "")));
    const list = make("dl");
    if (!model.plain) this.fact(list, "number", `%${id}`);
    this.fact(list, "operation", model.plain && model.word(r.op) !== r.op ? `${model.word(r.op)} (${r.op})` : r.op);
    if (r.variable && !r.name) this.fact(list, "variable", r.variable);
    this.fact(list, "type", r.type);
    if (r.attrs) this.fact(list, "attributes", r.attrs);
    this.fact(list, "role", r.role + (r.order > 1 ? ` of order ${r.order}` : "") + (r.computed ? "" : ", not computed by this graph"));
    if (r.scope) this.fact(list, "scope", r.scope);
    if (r.outputs.length) this.fact(list, "output", r.outputs.map((k) => doc.output_names[k] || String(k)).join(", "));
    const size = model.bytes(id);
    if (size !== undefined) this.fact(list, "memory", bytes(size));
    const k = model.kernelOf[id];
    if (k >= 0 && doc.kernels) this.fact(list, "kernel", `${k}: ${doc.kernels[k].text}`, doc.kernels[k].ns === null ? "" : `, ${time(doc.kernels[k].ns)}`);
    this.panel.append(list);
    this.source(r.source);
    this.rule(r);
    this.spreads();
    this.measures(r);
    this.rounding(id);
    this.panel.append(...overTime(this.app, id));
    if (r.origin !== null) this.section("Gradient of", [r.origin]);
    if (r.gradient !== null && r.gradient !== undefined) this.section("Its gradient", [r.gradient]);
    const beside = model.nodes.filter((n) => n.origin === id).map((n) => n.id).filter((x) => !model.folded[x]);
    this.section("Computed from", r.inputs);
    this.section("Used by", [...new Set(model.users[id])]);
    this.section("Nodes of its backward rule", beside);
  }

  private section(title: string, ids: number[]): void {
    if (!ids.length) return;
    this.panel.append(make("h3", {}, ids.length > 1 ? `${title} (${ids.length})` : title), this.links(ids.slice(0, 60)));
  }

  links(ids: number[], text = (id: number) => this.app.model.titles[id]): HTMLElement {
    const list = make("ul", { class: "links" });
    for (const id of ids) {
      const r = this.app.model.nodes[id];
      const go = () => void this.app.focus(this.app.model.folded[id] ? this.app.model.users[id][0] ?? id : id);
      list.append(make("li", {}, make("button", { type: "button", class: "link", click: go },
        make("span", { class: "id" }, this.app.model.plain ? "" : `%${id}`), " ", text(id), make("small", {}, ` ${r.type}`))));
    }
    return list;
  }

  private source(at: number | null): void {
    if (at === null) return;
    const s = this.app.model.doc.sources[at], place = `${s.file}:${s.line}`;
    const same = () => this.app.onFind?.(`line:${s.line} ${s.file.split(/[\\/]/).pop()}`);
    this.panel.append(make("h3", {}, "Source"), make("p", { class: "place" }, `${place} in ${s.function}`),
      s.text ? make("pre", { class: "source" }, s.text) : "",
      make("p", {}, button("Nodes of this line", "Find all nodes made by this line", same), " ", this.copy("Copy place", place)));
  }

  private copy(text: string, content: string): HTMLElement {
    const b = button(text, `${text}: ${content}`, () => {
      navigator.clipboard?.writeText(content).then(() => { b.textContent = "Copied"; }, () => { b.textContent = content; }) ?? (b.textContent = content);
    });
    return b;
  }

  private rule(r: NodeRecord): void {
    if (r.rule === null || !r.inputs.length) return;
    const { model } = this.app, rule = model.doc.rules[r.rule];
    const self = named(model.label(r.id)), name = (key: string) => (key === "g" ? `∂${self}` : key === "y" ? self : named(model.label(r.inputs[Number(key)])));
    const box = make("div", { class: "rule" }, typeset(`${self} = ${fill(rule.forward, name)}`));
    rule.back.forEach((t, i) => {
      const left = `∂${named(model.label(r.inputs[i]))}`;
      if (t !== null) box.append(isSentence(t) ? make("p", {}, `${inline(left)}: ${t}`) : typeset(`${left} = ${fill(t, name)}`));
    });
    this.panel.append(make("h3", {}, "Rule"), box);
  }

  private spreads(): void {
    const kinds: [Spread, string, string][] = [
      ["near", "Neighbours", "Only the edges of this node"], ["upstream", "Upstream", "All it is computed from (u)"],
      ["downstream", "Downstream", "All that uses it (d)"], ["paths", "Paths to the loss", "All paths between it and the loss, and the gradients on them (p)"],
    ];
    const row = make("div", { class: "segments", role: "group", "aria-label": "Highlight" });
    if (isWeight(this.app.model, this.app.selected)) kinds.splice(1, 0, ["gradient", "Its gradient", "The whole path of its gradient: forward to the loss, back from there, and its update"]);
    for (const [kind, text, title] of kinds) row.append(button(text, title, () => this.app.setSpread(kind), { "aria-pressed": String(this.app.spread === kind) }));
    this.panel.append(make("h3", {}, "Highlight"), row);
    const marked = this.app.view.marks.highlight;
    if (marked) this.panel.append(make("p", { class: "hint" }, `${count(marked.size, "node")} highlighted`));
  }

  private rounding(id: number): void {
    const e = this.app.model.doc.rounding?.[id];
    if (!e) return;
    const list = make("dl"), digits = (x: number) => `${show(x, 2)} digits`;
    this.fact(list, "what", e.kind + (e.count ? `, ${count(e.count, "element")}` : ""));
    this.fact(list, "loses", digits(toNumber(e.lost)));
    this.fact(list, "leaves", digits(toNumber(e.digits)));
    this.fact(list, "of the bound", `${show(100 * toNumber(e.share), 2)} %`);
    this.fact(list, "condition", show(toNumber(e.condition), 2));
    this.panel.append(make("h3", {}, "Rounding"), list);
    if (e.spread) this.panel.append(make("h3", {}, "Spread by rounding, standard deviation"), summaryView(e.spread));
  }

  private measures(r: NodeRecord): void {
    const { model } = this.app, value = model.summary(r.id), g = model.second[r.id] ? undefined : model.summary(r.gradient);
    if (value) this.panel.append(make("h3", {}, model.second[r.id] ? "Recorded value of this gradient node" : "Recorded value"), summaryView(value));
    if (g) this.panel.append(make("h3", {}, "Recorded gradient"), summaryView(g, true));
  }
}

export function summaryView(s: Summary, gradient = false): HTMLElement {
  const box = make("div", { class: "summary" });
  if (s.data) {
    const text = s.data.map((x) => (typeof x === "boolean" ? String(x) : show(toNumber(x), 6))).join(", ");
    box.append(make("p", { class: "numbers" }, s.size === undefined ? text : `[${text}]`));
  }
  if (s.size === undefined) return box;
  const list = make("dl");
  const share = s.size ? ` (${show((100 * (s.zeros ?? 0)) / s.size, 3)} %)` : "";
  const facts: [string, number | undefined, string?][] = [
    ["size", s.size], ["min", s.min], ["max", s.max], ["mean", s.mean], ["std", s.std], ["norm", s.norm],
    ["zeros", s.zeros, share], ["NaN", s.size ? s.nan ?? 0 : undefined], ["infinite", s.size ? s.inf ?? 0 : undefined]];
  for (const [name, x, more = ""] of facts) if (x !== undefined) {
    const bad = (name === "NaN" || name === "infinite") && x > 0;
    list.append(make("dt", {}, name), make("dd", { class: bad ? "bad" : "" }, (Number.isInteger(x) ? x.toLocaleString("en").replace("-", "−") : show(x)) + more));
  }
  if (s.bad) list.append(make("dt", {}, "first at"), make("dd", { class: "bad" }, `[${s.bad.join(", ")}]`));
  box.append(list);
  if (s.map) box.append(heatMap(s, s.map));
  if (s.hist && s.hist.length > 1) box.append(histogram(s.hist, s.min as number, s.max as number, gradient));
  return box;
}

export function histogram(counts: number[], low: number, high: number, gradient = false): HTMLElement {
  const most = Math.max(...counts), w = 240, h = 56, svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `histogram from ${show(low)} to ${show(high)}, at most ${most} in a bin`);
  svg.setAttribute("class", gradient ? "histogram gradient" : "histogram");
  counts.forEach((n, i) => {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), tall = n ? Math.max(1, (n / most) * h) : 0;
    for (const [k, v] of Object.entries({ x: (i * w) / counts.length + 0.5, y: h - tall, width: w / counts.length - 1, height: tall })) bar.setAttribute(k, String(v));
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = `${n}`;
    bar.append(title);
    svg.append(bar);
  });
  return make("figure", { class: "hist" }, svg, make("figcaption", {}, make("span", {}, show(low)), make("span", {}, show(high))));
}
