// The three lanes of a training step, side by side: forward, backward, update. In the third, parameters
// that are updated by the same rule are one box with a count, which opens to a box for each.

import type { Call, GraphDocument, Member, NodeRecord } from "./types";
import { count } from "./text";

export const FORWARD = 0, BACKWARD = 1, UPDATE = 2;
const NAMES = ["forward", "backward", "update"];
const LONG = 500; // how far up or down such an edge goes
const FEW = 3; // nodes that updates share, up to which they stand in the lane by themselves

/** Makes a scope; those in brackets are not of the user's program. */
type AddScope = (path: string, name: string, parent: number, note?: string) => number;

export class Lanes {
  readonly lane: Uint8Array; // of each node
  readonly scopes: number[] = []; // of the lanes
  readonly closed = new Set<number>(); // scopes that stay closed at first
  private readonly home = new Map<number, number>(); // scopes of nodes that update
  private readonly member = new Map<number, Member>(); // by parameter

  constructor(nodes: NodeRecord[], second: Uint8Array, private readonly updates: NonNullable<GraphDocument["updates"]>) {
    const updating = new Set(updates.nodes);
    this.lane = Uint8Array.from(nodes, (r) => (updating.has(r.id) ? UPDATE : second[r.id] ? BACKWARD : FORWARD));
    for (const r of nodes) if (r.body !== null) this.lane[r.id] = this.lane[r.body];
    for (const rule of updates.rules) for (const m of rule.members) this.member.set(m.parameter, m);
  }

  /** The scopes of the lanes, and those of the rules. */
  build(add: AddScope, nodes: NodeRecord[]): void {
    for (const name of NAMES) this.scopes.push(add(`⟨${name}⟩`, name, 0));
    const lane = this.scopes[UPDATE];
    this.updates.rules.forEach(({ name, members }, i) => {
      const many = members.length > 1, path = `⟨update⟩⟨${name} ${i}⟩`;
      const rule = many ? add(path, `${name} × ${members.length}`, lane, count(members.length, "parameter")) : lane;
      if (many) this.closed.add(rule);
      members.forEach((m) => {
        const r = nodes[m.parameter];
        const scope = add(`${path}⟨${m.parameter}⟩`, many ? r.name || `%${r.id}` : `${name} ${r.name}`, rule, r.type);
        this.closed.add(scope);
        for (const x of m.nodes) this.home.set(x, scope);
      });
    });
    const shared = this.updates.nodes.filter((x) => !this.home.has(x));
    if (shared.filter((x) => nodes[x].inputs.length).length <= FEW) return;
    const scope = add("⟨update⟩⟨shared⟩", "shared by all", lane);
    this.closed.add(scope);
    for (const x of shared) this.home.set(x, scope);
  }

  /** The formulas of the rules, which are those of the calls that their nodes are part of. */
  nameRules(scopes: { path: string; nodes: number[]; children: number[]; call: Call | undefined }[], nodes: NodeRecord[], calls: Call[]): void {
    const known = new Map(calls.map((c) => [c.scope, c]));
    for (const s of scopes) {
      if (!s.path.startsWith("⟨update⟩⟨")) continue;
      const inside = s.nodes.length ? s.nodes : s.children.flatMap((c) => scopes[c].nodes);
      const found = inside.map((x) => known.get(nodes[x].scope)).find((c) => c?.formula);
      if (found && s.path !== "⟨update⟩⟨shared⟩") s.call = found;
    }
  }

  /** The scope of a node that updates, the lane of any other: within it, the scopes are the user's. */
  scopeOf(id: number): number { return this.home.get(id) ?? this.scopes[this.lane[id]]; }

  isHome(id: number): boolean { return this.lane[id] === UPDATE; }

  /** What the gradient of a parameter comes from, and what is done with it. */
  update(parameter: number): Member | undefined { return this.member.get(parameter); }

  /** Whether an edge from lane to lane is drawn as its end alone, until its box is looked at: one that
   *  passes the lane between, or does not touch a closed scope. */
  isFar(node: number, from: number, to: number, down: number): boolean {
    if (this.lane[node] === FORWARD && to >= 0 && this.lane[to] === UPDATE) return true;
    return (from >= 0 && to >= 0) || Math.abs(down) > LONG;
  }

  /** How an edge is drawn: 0 downwards, 1 between gradients, 2 from lane to lane. */
  kind(from: number, to: number): number {
    return this.lane[from] !== this.lane[to] ? 2 : this.lane[from] === BACKWARD ? 1 : 0;
  }
}
