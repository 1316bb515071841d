// What changed between two graphs, and where the values of two runs part: lists to jump from.

import type { App } from "./app";
import { button, make } from "./dom";
import type { Model } from "./model";
import { count, show, toNumber } from "./text";
import type { Change, NodeRecord } from "./types";

type Row = (id: number, more?: string) => HTMLElement;
const KINDS: Change[] = ["added", "removed", "changed", "moved"];
const MOST = 300; // rows of a list

/** Whether no node is other than it was: then it is about values. */
export function unchanged(model: Model): boolean {
  return !model.nodes.some((r) => r.change && r.change !== "same");
}

export function changes(app: App, row: Row): Node[] {
  const { model } = app, [before, after] = model.doc.compared ?? ["", ""], parts: Node[] = [];
  const own = model.nodes.filter((r) => r.body === null && !comesAlong(model, r)), found = KINDS.map((kind) => own.filter((r) => r.change === kind));
  const all = found.flat().map((r) => r.id);
  parts.push(make("p", { class: "hint" }, `From ${before || "the first graph"} to ${after || "the second"}: ${count(all.length, "change")}, ${count(own.length - all.length, "node")} unchanged.`), walk(app, all));
  KINDS.forEach((kind, i) => {
    if (!found[i].length) return;
    parts.push(make("h3", { class: `change ${kind}` }, `${kind} (${found[i].length})`), make("ul", { class: "links" }, ...found[i].slice(0, MOST).map((r) => row(r.id, told(r)))), rest(found[i].length));
  });
  return parts;
}

/** A constant that came or went with what uses it. */
function comesAlong(model: Model, r: NodeRecord): boolean {
  return r.role === "constant" && (r.change === "added" || r.change === "removed") && model.users[r.id].every((u) => model.nodes[u].change === r.change);
}

function told(r: NodeRecord): string {
  const how = r.differs?.length ? `${r.differs.join(", ")}; ` : "";
  return r.change === "moved" ? `from ${r.was} to ${r.scope || "outside of scopes"}` : r.was ? `${how}was ${r.was}` : r.scope || " ";
}

export function differences(app: App, row: Row): Node[] {
  const all = (app.model.doc.differences ?? []).map((d) => ({ ...d, relative: toNumber(d.relative), largest: toNumber(d.largest) }));
  const apart = all.filter((d) => d.relative > 0 || d.largest > 0), most = Math.max(0, ...apart.map((d) => d.relative).filter(Number.isFinite));
  const rows = apart.slice(0, MOST).map((d) => {
    const item = row(d.node, `${Number.isFinite(d.relative) ? `${show(100 * d.relative, 3)} % apart` : "not finite in one"}, at most ${show(d.largest)}`), bar = make("div", { class: "bar" });
    bar.style.width = `${most ? Math.min(96, (96 * d.relative) / most) : 0}%`;
    item.append(bar);
    return item;
  });
  return [
    make("p", { class: "hint" }, `${apart.length.toLocaleString("en")} of ${count(all.length, "value")} differ, the largest relative difference first: ‖a − b‖ / max(‖a‖, ‖b‖).`),
    walk(app, apart.map((d) => d.node)), make("ul", { class: "links" }, ...rows), rest(apart.length),
  ];
}

/** For each scope the outcome of what is in it, at any depth. */
export function within<T>(model: Model, value: (id: number) => T | undefined, merge: (a: T, b: T) => T): Map<number, T> {
  const found = new Map<number, T>();
  for (const r of model.nodes) {
    const v = value(r.id);
    if (v === undefined) continue;
    for (let s = model.scopeOf[r.id]; s > 0; s = model.scopes[s].parent) found.set(s, found.has(s) ? merge(found.get(s) as T, v) : v);
  }
  return found;
}

/** How far the values of a node are apart, for its colour. */
export function apart(model: Model): Map<number, number> {
  return new Map((model.doc.differences ?? []).map((d) => [d.node, toNumber(d.relative)]));
}

function rest(n: number): Node {
  return n > MOST ? make("p", { class: "hint" }, `and ${(n - MOST).toLocaleString("en")} more`) : make("span");
}

/** Goes through a list, one after the other. */
function walk(app: App, ids: number[]): HTMLElement {
  const { model } = app, place = make("span", { class: "counter", role: "status" }, `${ids.length ? "–" : "0"} / ${ids.length}`);
  let at = -1;
  const go = (by: number) => {
    if (!ids.length) return;
    at = at < 0 ? (by > 0 ? 0 : ids.length - 1) : (at + by + ids.length) % ids.length;
    place.textContent = `${at + 1} / ${ids.length}`;
    const id = ids[at];
    void app.focus(model.folded[id] ? model.users[id][0] ?? id : id);
  };
  return make("p", { class: "row walk" }, button("‹ Previous", "Go to the previous one in this list", () => go(-1)), button("Next ›", "Go to the next one in this list", () => go(1)), place);
}
