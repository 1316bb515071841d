// The left side: outline, results of a search, parameters, kernels, what changed.

import { gradients, type App } from "./app";
import { changes, differences, unchanged } from "./changes";
import { button, make } from "./dom";
import { bytes, count, show, time } from "./text";
import { Twin } from "./twin";

export class Sidebar {
  private readonly app: App;
  private readonly box: HTMLElement;
  private readonly tabs: HTMLElement;
  private readonly body: HTMLElement;
  private readonly views: [string, string, () => void][] = [];
  private current = "";
  readonly twin: Twin;

  constructor(app: App, box: HTMLElement) {
    this.app = app;
    this.box = box;
    this.twin = new Twin(app);
    this.tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "Lists" });
    this.body = make("div", { class: "list", role: "tabpanel" });
    box.append(this.tabs, this.body);
    const doc = app.model.doc;
    this.views.push(["outline", "Outline", () => this.outline()]);
    this.views.push(["gradients", "Parameters", () => this.parameters()]);
    if (doc.kernels) this.views.push(["kernels", "Kernels", () => this.kernels()]);
    const row = (id: number, more?: string) => this.rowOf(id, more);
    if (doc.compared && !(doc.differences && unchanged(app.model))) this.views.push(["changes", "Changes", () => this.body.replaceChildren(...changes(app, row))]);
    if (doc.differences) this.views.push(["differences", "Differences", () => this.body.replaceChildren(...differences(app, row))]);
    this.views.push(["results", "Results", () => this.results([], "")]);
    for (const [id, name] of this.views) this.tabs.append(make("button", { type: "button", role: "tab", id: `tab-${id}`, click: () => this.open(id) }, name));
    this.tabs.addEventListener("keydown", (e) => this.turn(e));
    app.onOpen.push(() => { if (this.current === "outline") this.outline(); });
    app.onSelect.push(() => this.follow());
    app.onStep.push(() => { if (this.current === "outline") this.twin.step(); });
    this.open(this.views.find(([id]) => id === "changes" || id === "differences")?.[0] ?? "outline");
  }

  open(id: string): void {
    this.current = id;
    this.box.hidden = false;
    for (const tab of this.tabs.children as unknown as HTMLElement[]) {
      tab.setAttribute("aria-selected", String(tab.id === `tab-${id}`));
      tab.tabIndex = tab.id === `tab-${id}` ? 0 : -1;
    }
    this.body.setAttribute("aria-labelledby", `tab-${id}`);
    this.views.find(([name]) => name === id)?.[2]();
  }

  /** From tab to tab by arrow keys. */
  private turn(e: KeyboardEvent): void {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0, at = this.views.findIndex(([id]) => id === this.current);
    if (!by) return;
    e.preventDefault();
    this.open(this.views[(at + by + this.views.length) % this.views.length][0]);
    (this.tabs.querySelector("[aria-selected=true]") as HTMLElement).focus();
  }

  find(query: string): number[] {
    const found = this.app.model.search(query);
    this.open("results");
    this.results(found, query);
    return found;
  }

  private rowOf(id: number, more = ""): HTMLElement {
    const { model } = this.app, r = model.nodes[id];
    const go = () => void this.app.focus(model.folded[id] ? model.users[id][0] ?? id : id);
    return make("li", {}, make("button", { type: "button", class: "link", click: go, "data-node": String(id), title: model.titles[id] },
      make("span", { class: "id" }, model.plain ? "" : `%${id}`), " ", make("span", {}, model.titles[id]), make("small", {}, ` ${r.type}`),
      make("small", { class: "more" }, more || [r.scope, model.place(id)].filter(Boolean).join(" · "))));
  }

  private results(ids: number[], query: string): void {
    const list = make("ul", { class: "links" }, ...ids.slice(0, 300).map((id) => this.rowOf(id)));
    const text = query ? `${count(ids.length, "node")} for “${query}”` + (ids.length > 300 ? ", the first 300 shown" : "") : "Type into the search field above.";
    this.body.replaceChildren(make("p", { class: "hint", role: "status" }, text), list);
  }

  private parameters(): void {
    const { model } = this.app, listed = gradients(model);
    const rest = model.nodes.filter((r) => (r.role === "parameter" || r.role === "input") && (r.gradient === null || r.gradient === undefined));
    const most = Math.max(0, ...listed.map((g) => g.norm ?? 0).filter(Number.isFinite));
    const measured = listed.some((g) => g.norm !== undefined);
    const rows = listed.map(({ id, norm, mark }) => {
      const row = this.rowOf(id, norm === undefined ? " " : `‖∂‖ = ${show(norm)}${mark ? ` · ${mark.split(":")[0]}` : ""}`);
      row.className = mark ? "marked" : "";
      if (norm !== undefined && Number.isFinite(norm)) { const bar = make("div", { class: "bar" }); bar.style.width = `${most ? (100 * norm) / most : 0}%`; row.append(bar); }
      return row;
    });
    const hint = measured ? "By the norm of the gradient, largest first." : "No gradients were recorded: give inputs to show() or to_html(), and they are.";
    this.body.replaceChildren(make("p", { class: "hint" }, hint), make("ul", { class: "links" }, ...rows, ...rest.map((r) => this.rowOf(r.id, " "))));
  }

  private kernels(): void {
    const { model } = this.app, kernels = model.doc.kernels ?? [];
    const cost = (i: number) => kernels[i].ns ?? kernels[i].least_ns ?? 0;
    const measured = kernels.some((k) => k.ns !== null), total = kernels.reduce((sum, _, i) => sum + cost(i), 0);
    const order = kernels.map((_, i) => i).sort((a, b) => cost(b) - cost(a));
    const most = Math.max(1e-9, ...kernels.map((_, i) => cost(i)));
    const rows = order.slice(0, 400).map((i) => {
      const k = kernels[i], bar = make("div", { class: "bar" });
      bar.style.width = `${(100 * cost(i)) / most}%`;
      const moved = k.bytes === null ? "" : ` · ${bytes(k.bytes)}`;
      return make("li", {}, make("button", { type: "button", class: "link", click: () => this.showKernel(i), "data-kernel": String(i) },
        make("span", { class: "id" }, `k${i}`), " ", make("span", {}, k.text),
        make("small", { class: "more" }, `${measured ? "" : "at least "}${time(cost(i))}${moved}${k.ops ? ` · ${k.ops}` : ""}`)), bar);
    });
    this.body.replaceChildren(
      make("p", { class: "hint" }, `${count(kernels.length, "kernel")}, ${time(total)} ${measured ? "measured" : "at least; give inputs to measure"}. A kernel's nodes are computed in one loop.`),
      this.arena(), make("ul", { class: "links" }, ...rows));
  }

  private showKernel(i: number): void {
    const nodes = (this.app.model.doc.kernels ?? [])[i].nodes;
    if (!nodes.length) { this.app.announce("the nodes of this kernel were made by the compiler"); return; }
    void this.app.focus(nodes[0]).then(() => { this.app.view.marks.group = new Set(nodes); this.app.setMode("kernel"); });
  }

  private arena(): HTMLElement {
    const arena = this.app.model.doc.arena;
    const figure = make("figure", { class: "arena" });
    if (!arena || !arena.times.length) return figure;
    const w = 300, h = 80, svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), most = Math.max(...arena.times, 1);
    svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `memory of the arena over ${arena.times.length} times, at most ${bytes(most)}`);
    const step = w / arena.times.length;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M0 ${h}` + arena.times.map((b, i) => `L${(i * step).toFixed(1)} ${(h - (b / most) * (h - 4)).toFixed(1)}H${((i + 1) * step).toFixed(1)}`).join("") + `L${w} ${h}Z`);
    svg.append(path);
    figure.append(svg, make("figcaption", {}, `Arena over time: at most ${bytes(most)} in use, ${bytes(arena.peak)} reserved`));
    return figure;
  }

  private follow(): void {
    if (this.current === "outline") { this.twin.follow(); return; }
    for (const b of this.body.querySelectorAll("[data-node]")) {
      b.toggleAttribute("aria-current", b.getAttribute("data-node") === String(this.app.selected));
    }
  }

  /** What is shown, as text. */
  private outline(): void {
    this.twin.update();
    if (this.twin.element.isConnected) return;
    this.body.replaceChildren(make("p", { class: "row" },
      button("Open all", "Open all scopes", () => void this.app.setAll(true)), button("Close all", "Close all scopes", () => void this.app.setAll(false))), this.twin.element);
  }
}
