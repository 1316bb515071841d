// The picture as text: a tree of what is shown, in the order in which it is computed, with edges,
// values and gradients. It follows what is open and selected, and the picture follows it.

import type { App } from "./app";
import { button, make } from "./dom";
import { brief, count, short, tail } from "./text";

const MOST = 400; // rows that are in the page at once
const NAMES = 6; // inputs or users that a row names

interface Row { item: number; depth: number; at: number; among: number } // a node, or ~a scope; place among its siblings

export class Twin {
  readonly element: HTMLElement;
  private readonly app: App;
  private readonly tree: HTMLElement;
  private readonly above: HTMLElement;
  private readonly below: HTMLElement;
  private rows: Row[] = [];
  private where = new Map<number, number>();
  private from = 0; // the first row that is in the page
  private active = 0;

  constructor(app: App) {
    this.app = app;
    this.tree = make("ul", { role: "tree", class: "tree", tabindex: "0", "aria-label": "Graph as text: what is shown, inputs first" });
    this.above = button("", "Rows before these", () => this.turn(-1));
    this.below = button("", "Rows after these", () => this.turn(1));
    this.element = make("div", { class: "twin" }, this.above, this.tree, this.below);
    this.tree.addEventListener("keydown", (e) => this.key(e));
    this.tree.addEventListener("click", (e) => {
      const row = (e.target as HTMLElement).closest<HTMLElement>("[role=treeitem]");
      if (row) this.press(Number(row.dataset.item));
    });
  }

  get focused(): boolean { return document.activeElement === this.tree; }

  focus(): void { this.tree.focus(); this.sight(); }

  /** The rows anew: something opened, closed or was folded. */
  update(): void {
    const { model, open, beside } = this.app, kept = this.rows[this.active]?.item;
    this.rows = [];
    const beyond: number[][] = beside ? model.nodes.map(() => []) : [];
    if (beside) for (const r of model.nodes) if (!model.folded[r.id] && model.unit[r.id] !== r.id) beyond[model.unit[r.id]].push(r.id);
    const first = this.firsts(), needs = this.needs();
    const todo: Row[] = this.members(0, first, needs).reverse();
    while (todo.length) {
      const row = todo.pop() as Row;
      this.rows.push(row);
      if (row.item < 0) {
        if (open[~row.item]) todo.push(...this.members(~row.item, first, needs, row.depth + 1).reverse());
      } else if (beside) {
        const under = beyond[row.item];
        under.forEach((item, i) => this.rows.push({ item, depth: row.depth + 1, at: i + 1, among: under.length }));
      }
    }
    this.where = new Map(this.rows.map((r, i) => [r.item, i]));
    this.active = Math.max(0, this.where.get(this.app.selected) ?? (kept === undefined ? 0 : this.where.get(kept) ?? 0));
    this.around();
    this.write();
  }

  /** What was selected elsewhere. */
  follow(): void {
    const { selected, view } = this.app, stands = selected >= 0 ? view.placed?.stands[selected] : undefined;
    const at = this.where.get(selected) ?? (stands === undefined ? undefined : this.where.get(stands));
    if (at !== undefined) this.active = at;
    if (this.active < this.from || this.active >= this.from + MOST) { this.around(); this.write(); } else this.mark();
    if (at !== undefined) this.sight();
  }

  /** The row of the step that the player shows. */
  step(): void {
    const at = this.where.get(this.app.view.marks.step?.node ?? -1);
    if (at !== undefined && (at < this.from || at >= this.from + MOST)) { this.active = at; this.around(); this.write(); } else this.mark();
    if (at !== undefined) document.getElementById(`row${this.rows[at].item}`)?.scrollIntoView({ block: "nearest" });
  }

  /** The first node that each scope computes: scopes stand where that would. */
  private firsts(): number[] {
    const { scopes, nodes } = this.app.model, least = (ids: number[]) => ids.reduce((a, b) => Math.min(a, b), Infinity);
    const found = scopes.map((s) => least(s.nodes.filter((x) => nodes[x].inputs.length))), leaves = scopes.map((s) => least(s.nodes));
    for (const all of [found, leaves]) {
      const own = [...all];
      for (const s of scopes) for (let p = s.parent; p >= 0; p = scopes[p].parent) all[p] = Math.min(all[p], own[s.id]);
    }
    return found.map((x, i) => (Number.isFinite(x) ? x : leaves[i])); // of inputs only
  }

  /** What the members of each scope, nodes or scopes as ~id, are computed from beside them. */
  private needs(): Map<number, Set<number>> {
    const { nodes, scopes, scopeOf, unit, folded, second } = this.app.model, found = new Map<number, Set<number>>();
    const depth = scopes.map((s) => { let d = 0; for (let p = s.parent; p >= 0; p = scopes[p].parent) d++; return d; });
    for (const r of nodes) {
      if (folded[r.id] || unit[r.id] !== r.id) continue;
      if (second[r.id] && scopes[scopeOf[r.id]].forward) continue; // beside forward nodes, whose order it is
      for (const x of r.inputs) {
        if (folded[x]) continue;
        let u = unit[x], v = r.id, a = scopeOf[u], b = scopeOf[v];
        while (a !== b) if (depth[a] >= depth[b]) { u = ~a; a = scopes[a].parent; } else { v = ~b; b = scopes[b].parent; }
        if (u === v) continue;
        const known = found.get(v);
        if (known) known.add(u); else found.set(v, new Set([u]));
      }
    }
    return found;
  }

  /** The members of a scope, each after those that it is computed from, unless they form a cycle. */
  private members(scope: number, first: number[], needs: Map<number, Set<number>>, depth = 1): Row[] {
    const { model } = this.app, s = model.scopes[scope], key = (item: number) => (item < 0 ? first[~item] : item);
    const items = [...s.nodes.filter((x) => model.unit[x] === x && !model.folded[x]), ...s.children.map((c) => ~c)].sort((a, b) => key(a) - key(b));
    const done = new Set<number>(), sorted: number[] = [];
    const visit = (item: number): void => {
      if (done.has(item)) return;
      done.add(item);
      for (const x of needs.get(item) ?? []) visit(x);
      sorted.push(item);
    };
    items.forEach(visit);
    return sorted.map((item, i) => ({ item, depth, at: i + 1, among: sorted.length }));
  }

  private around(): void {
    this.from = Math.max(0, Math.min(this.active - (MOST >> 1), this.rows.length - MOST));
  }

  private turn(by: number): void {
    this.active = Math.max(0, Math.min(this.rows.length - 1, this.active + by * MOST));
    this.around();
    this.write();
    this.sight();
  }

  private write(): void {
    const shown = this.rows.slice(this.from, this.from + MOST), rest = this.rows.length - this.from - shown.length;
    this.tree.replaceChildren(...shown.map((row) => this.rowOf(row)));
    this.above.hidden = this.from === 0;
    this.below.hidden = rest <= 0;
    this.above.textContent = `${count(this.from, "row")} before these`;
    this.below.textContent = `${count(rest, "row")} after these`;
    this.mark();
  }

  private rowOf(row: Row): HTMLElement {
    const { model, open } = this.app, { item } = row;
    const attrs: Record<string, string> = {
      role: "treeitem", id: `row${item}`, "data-item": String(item), "aria-level": String(row.depth),
      "aria-posinset": String(row.at), "aria-setsize": String(row.among), "aria-selected": "false",
    };
    if (item >= 0) attrs["data-node"] = String(item); else { attrs["data-scope"] = String(~item); attrs["aria-expanded"] = String(Boolean(open[~item])); }
    const line = make("li", attrs, make("span", { class: "twist", "aria-hidden": "true" }, item >= 0 ? "" : open[~item] ? "▾" : "▸"), ...this.words(item, model));
    line.style.setProperty("--depth", String(Math.min(row.depth, 9) - 1));
    return line;
  }

  private words(item: number, model = this.app.model): (Node | string)[] {
    const ends = (title: string, ids: number[], text: (id: number) => string) =>
      ids.length ? `${title} ${ids.slice(0, NAMES).map(text).join(", ")}${ids.length > NAMES ? ` and ${ids.length - NAMES} more` : ""}` : "";
    if (item < 0) {
      const s = model.scopes[~item], { from, to } = this.app.neighbours(item), name = (x: number) => this.name(x, item);
      return [short(s.name, 80), make("small", {}, `, ${count(s.count, "node")}`),
        make("small", { class: "more" }, [ends("from", from, name), ends("to", to, name)].filter(Boolean).join("; "))];
    }
    const r = model.nodes[item], value = brief(model.summary(item)), g = model.second[item] ? undefined : r.gradient;
    const label = (id: number) => tail(model.label(id), 32), users = [...new Set(model.users[item])].filter((x) => !model.folded[x]);
    const told = [
      ends("from", r.inputs, label), ends(users.length ? "used by" : "", users, label),
      r.outputs.length ? `output ${r.outputs.map((k) => model.doc.output_names[k] || String(k)).join(", ")}` : "",
      value && `value ${value}`, g === undefined || g === null ? "" : `gradient ${brief(model.summary(g)) || model.label(g)}`,
      this.app.view.marks.warnings.get(item) ?? "",
    ];
    const title = short(model.titles[item], 80), label0 = label(item);
    return [title === label0 || r.name || title.startsWith(`${label0} = `) ? title : `${label0} = ${title}`, make("small", {}, `, ${r.type}${model.second[item] ? ", backward" : ""}`),
      make("small", { class: "more" }, told.filter(Boolean).join("; "))];
  }

  /** How a row calls what an edge of it leads to: with the outermost scope, if that is another. */
  private name(x: number, from: number): string {
    const { scopes, scopeOf } = this.app.model;
    const outermost = (item: number): number => { let s = item < 0 ? ~item : scopeOf[item]; while (scopes[s].parent > 0) s = scopes[s].parent; return s; };
    const there = outermost(x), apart = there > 0 && there !== outermost(from) && there !== ~x;
    return `${apart ? `${scopes[there].name}: ` : ""}${tail(this.app.name(x), 32)}`;
  }

  private mark(): void {
    const { selected } = this.app, row = this.rows[this.active];
    for (const line of this.tree.querySelectorAll("[aria-current], [aria-selected=true], .active")) {
      line.classList.remove("active");
      line.removeAttribute("aria-current");
      line.setAttribute("aria-selected", "false");
    }
    if (!row) { this.tree.removeAttribute("aria-activedescendant"); return; } // of an empty graph
    const line = document.getElementById(`row${row.item}`);
    this.tree.setAttribute("aria-activedescendant", `row${row.item}`);
    line?.classList.add("active");
    if (row.item === selected && selected !== -1) { line?.setAttribute("aria-selected", "true"); line?.setAttribute("aria-current", "true"); }
    const step = this.app.view.marks.step?.node;
    if (step !== undefined) document.getElementById(`row${step}`)?.setAttribute("aria-current", "step");
  }

  private sight(): void {
    document.getElementById(`row${this.rows[this.active]?.item}`)?.scrollIntoView({ block: "nearest" });
  }

  private press(item: number): void {
    this.go(item);
    if (item < 0) void this.app.toggle(~item);
  }

  private go(item: number | undefined): void {
    if (item === undefined) return;
    this.active = this.where.get(item) ?? this.active;
    this.app.select(item, this.focused);
    this.app.reveal(item);
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { rows, active } = this, row = rows[active];
    if (!row) return;
    const open = row.item < 0 && this.app.open[~row.item], step = (by: number) => this.go(rows[Math.max(0, Math.min(rows.length - 1, active + by))]?.item);
    const outer = () => { let i = active - 1; while (i >= 0 && rows[i].depth >= row.depth) i--; return rows[i]?.item; };
    const moves: Record<string, () => void> = {
      ArrowDown: () => step(1), ArrowUp: () => step(-1), PageDown: () => step(20), PageUp: () => step(-20),
      Home: () => step(-Infinity), End: () => step(Infinity),
      Enter: () => this.press(row.item), " ": () => this.press(row.item),
      ArrowRight: () => (row.item < 0 && !open ? this.press(row.item) : step(1)),
      ArrowLeft: () => (open ? this.press(row.item) : this.go(outer())),
    };
    const move = moves[e.key];
    if (!move) return;
    e.preventDefault();
    move();
  }
}
