// The document as a program wants it: users, scopes as a tree, what is folded into what.

import { Lanes } from "./lanes";
import type { Call, GraphDocument, NodeRecord, Summary } from "./types";
import { lowered, short, toNumber } from "./text";

const USUAL = {
  family: "other", name: "", variable: "", attrs: "", shape: "", scope: "", source: null, origin: null,
  inputs: [] as number[], role: "forward", order: 0, outputs: [] as number[], computed: true,
  rule: null, body: null,
} as const;
const LEAVES = 40; // inputs and constants in a scope beyond which they are put into groups
const CROWD = 300; // members of a scope beyond which they are put into parts
const PART = 64; // members of such a part

export interface Scope {
  id: number; path: string; name: string; parent: number; // -1 for the outermost, which is 0
  children: number[]; nodes: number[]; count: number; forward: number; backward: number; note: string;
  call: Call | undefined; // what was called, of a call or a module
}

export class Model {
  readonly doc: GraphDocument;
  readonly nodes: NodeRecord[];
  readonly users: number[][];
  readonly scopes: Scope[] = [];
  readonly scopeOf: Int32Array; // of each node, parts included
  readonly unit: Int32Array; // the forward node beside which a node is drawn, or itself
  readonly folded: Uint8Array; // constants that are written into the titles of their users
  readonly second: Uint8Array; // belongs to the backward side
  titles: string[];
  plain = true;
  private readonly gradientOf = new Map<number, number>(); // of nodes that hold gradients
  readonly kernelOf: Int32Array;
  readonly lanes: Lanes | undefined; // of a training step
  readonly updating: ReadonlySet<number>; // nodes of its updates
  private readonly haystack: (string | undefined)[] = [];

  constructor(doc: GraphDocument, inLanes = true) {
    this.doc = doc;
    this.nodes = doc.nodes.map((r, id) => ({ ...USUAL, ...r, id }) as NodeRecord);
    const n = this.nodes.length;
    this.users = Array.from({ length: n }, () => []);
    for (const r of this.nodes) for (const x of r.inputs) this.users[x].push(r.id);
    this.second = Uint8Array.from(this.nodes, (r) => (r.order > 0 ? 1 : 0));
    this.markSecond();
    this.folded = Uint8Array.from(this.nodes, (r) => this.foldable(r) ? 1 : 0);
    this.updating = new Set(doc.updates?.nodes);
    this.lanes = inLanes && doc.updates ? new Lanes(this.nodes, this.second, doc.updates) : undefined;
    this.unit = this.units();
    this.scopeOf = new Int32Array(n);
    this.buildScopes();
    for (const r of this.nodes) if (r.gradient !== null && r.gradient !== undefined && r.gradient !== r.id && !this.gradientOf.has(r.gradient)) this.gradientOf.set(r.gradient, r.id);
    this.titles = this.nodes.map((r) => this.titleOf(r));
    this.kernelOf = new Int32Array(n).fill(-1);
    (doc.kernels ?? []).forEach((k, i) => k.nodes.forEach((x) => (this.kernelOf[x] = i)));
  }

  /** Constants that only gradients use stand on their side. */
  private markSecond(): void {
    for (const r of this.nodes) {
      if (r.role !== "constant" && r.role !== "input") continue;
      const users = this.users[r.id];
      if (users.length && users.every((u) => this.second[u])) this.second[r.id] = 1;
    }
  }

  private foldable(r: NodeRecord): boolean {
    return r.role === "constant" && r.outputs.length === 0 && this.users[r.id].length > 0 && (r.change ?? "same") === "same";
  }

  private units(): Int32Array {
    const unit = new Int32Array(this.nodes.length);
    const pending: number[] = [];
    for (const r of this.nodes) {
      let at: number = r.id;
      while (!this.lanes && this.nodes[at].origin !== null) at = this.nodes[at].origin as number;
      unit[r.id] = at;
      if (this.second[r.id] && at === r.id) pending.push(r.id);
    }
    for (const id of pending) { // leaves of gradients stand beside their first user
      const users = this.users[id];
      if (users.length && this.nodes[id].inputs.length === 0) unit[id] = unit[users[0]];
    }
    return unit;
  }

  private addScope(path: string, name: string, parent: number, note = ""): number {
    const id = this.scopes.length;
    this.scopes.push({ id, path, name, parent, children: [], nodes: [], count: 0, forward: 0, backward: 0, note, call: undefined });
    if (parent >= 0) this.scopes[parent].children.push(id);
    return id;
  }

  private buildScopes(): void {
    this.addScope("", "", -1);
    const known = new Map<string, number>([["", 0]]);
    this.lanes?.build((...of) => this.addScope(...of), this.nodes);
    const find = (path: string, root = 0): number => {
      const lane = root ? `${root} ` : "", found = path ? known.get(lane + path) : root;
      if (found !== undefined) return found;
      let parent = root, before = "", levels = 1;
      const cuts: number[] = [];
      for (let i = 0, depth = 0; i < path.length && levels < 32; i++) {
        if (path[i] === "(") depth++;
        else if (path[i] === ")" && depth) depth--;
        if (i && !depth && (path[i] === "." || path[i] === "[")) { cuts.push(i); levels++; }
      }
      for (const end of [...cuts, path.length]) {
        const prefix = path.slice(0, end);
        let id = known.get(lane + prefix);
        if (id === undefined) {
          id = this.addScope(prefix, prefix.slice(before.length).replace(/^\./, ""), parent);
          known.set(lane + prefix, id);
        }
        parent = id;
        before = prefix;
      }
      return parent;
    };
    for (const r of this.nodes) {
      this.scopeOf[r.id] = this.lanes?.isHome(r.id) ? this.lanes.scopeOf(r.id) : find(r.scope, this.lanes?.scopeOf(r.id));
    }
    this.moveLeaves();
    for (const r of this.nodes) { // what stands beside a forward node stands in its scope
      this.scopeOf[r.id] = this.scopeOf[this.unit[r.id]];
    }
    for (const r of this.nodes) this.scopes[this.scopeOf[r.id]].nodes.push(r.id);
    this.mergeOnlyChildren();
    this.nameCalls();
    this.lanes?.nameRules(this.scopes, this.nodes, this.doc.calls ?? []);
    for (const scope of [...this.scopes]) this.divide(scope);
    for (const scope of [...this.scopes]) this.groupLeaves(scope);
    this.groupUnused();
    this.countAll();
  }

  /** Inputs without a scope, and other names of them, stand where they are used, if that is one scope. */
  private moveLeaves(): void {
    const depth = this.scopes.map(() => 0);
    this.scopes.forEach((s, i) => { if (s.parent >= 0) depth[i] = depth[s.parent] + 1; });
    const common = (a: number, b: number): number => {
      while (a !== b) if (depth[a] >= depth[b]) a = this.scopes[a].parent; else b = this.scopes[b].parent;
      return a;
    };
    for (const r of [...this.nodes].reverse()) {
      const stands = r.inputs.length === 0 || r.op === "alias"; // an input under another identity
      if (!stands || r.scope || this.unit[r.id] !== r.id || this.lanes?.isHome(r.id)) continue;
      const own = this.users[r.id].filter((u) => (this.lanes ? this.lanes.lane[u] === this.lanes.lane[r.id] : !this.second[u] || this.second[r.id]));
      const users = own.length ? own : this.users[r.id];
      if (users.length && (own.length || !this.lanes)) this.scopeOf[r.id] = users.map((u) => this.scopeOf[u]).reduce(common);
    }
  }

  /** A scope that holds one scope and nothing else is shown as one: model.layers. */
  private mergeOnlyChildren(): void {
    for (const s of this.scopes) {
      if (s.id === 0 || s.parent < 0 || s.path.startsWith("⟨")) continue;
      while (s.children.length === 1 && s.nodes.length === 0) {
        const child = this.scopes[s.children[0]];
        const outer = this.scopes[s.parent].path;
        s.name = child.path.slice(outer.startsWith("⟨") ? 0 : outer.length).replace(/^\./, "");
        s.path = child.path;
        s.children = child.children;
        s.nodes = child.nodes;
        for (const c of s.children) this.scopes[c].parent = s.id;
        for (const x of s.nodes) this.scopeOf[x] = s.id;
        child.parent = -2; // no longer there
        child.nodes = [];
        child.children = [];
      }
    }
  }

  /** Calls and layers by what was called, and their formula. */
  private nameCalls(): void {
    const calls = new Map((this.doc.calls ?? []).map((c) => [c.scope, c]));
    for (const s of this.scopes) {
      s.call = calls.get(s.path);
      if (!s.call) continue;
      if (s.path.endsWith(")")) s.name = s.call.of ? `${s.call.name}: ${s.call.of}` : s.call.name;
      else if (s.name !== s.call.name) s.name += ` · ${s.call.name}`;
    }
  }

  /** Whether a scope is closed at first: what was called is what the user knows it as. */
  isCall(s: number): boolean {
    const call = this.scopes[s].call;
    if (call === undefined) return this.scopes[s].path === "⟨unused⟩";
    return call.formula !== "" || call.scope.endsWith(")");
  }

  /** Puts the members of a crowded scope into parts, in order, and those into larger parts. */
  private divide(scope: Scope): void {
    const roots = scope.nodes.filter((x) => this.unit[x] === x && !this.folded[x]);
    const moved = roots.filter((x) => this.nodes[x].inputs.length > 0);
    if (moved.length <= CROWD) return;
    const part = new Map<number, number>();
    let level: number[] = [];
    for (let i = 0; i < moved.length; i += PART) {
      const chunk = moved.slice(i, i + PART);
      const id = this.addScope(`${scope.path}⟨${i}⟩`, this.partName(chunk), scope.id);
      for (const x of chunk) part.set(x, id);
      level.push(id);
    }
    while (level.length > PART) {
      const next: number[] = [];
      for (let i = 0; i < level.length; i += PART / 2) {
        const chunk = level.slice(i, i + PART / 2);
        const first = this.scopes[chunk[0]], last = this.scopes[chunk[chunk.length - 1]];
        const id = this.addScope(`${scope.path}⟨${i}…⟩`, `${first.name.split("–")[0]}–${last.name.split("–")[1].split(" ")[0]}`, scope.id);
        for (const c of chunk) this.scopes[c].parent = id;
        this.scopes[id].children = chunk;
        next.push(id);
      }
      level = next;
    }
    scope.children = [...scope.children.filter((c) => !this.scopes[c].path.includes("⟨")), ...level];
    for (const x of roots) { // leaves go to the part that uses them first, if only one does
      if (part.has(x)) continue;
      const homes = new Set(this.users[x].map((u) => part.get(this.unit[u])));
      const home = homes.size === 1 ? [...homes][0] : undefined;
      if (home !== undefined) part.set(x, home);
    }
    const kept: number[] = [];
    for (const x of scope.nodes) {
      const home = part.get(this.unit[x]);
      if (home === undefined) kept.push(x);
      else { this.scopeOf[x] = home; this.scopes[home].nodes.push(x); }
    }
    scope.nodes = kept;
  }

  /** Puts many inputs and constants of a scope into groups, by the first part of their names. */
  private groupLeaves(scope: Scope): void {
    const leaves = scope.nodes.filter((x) => this.unit[x] === x && !this.folded[x] && this.nodes[x].inputs.length === 0);
    if (leaves.length <= LEAVES) return;
    const groups = new Map<string, number[]>();
    for (const x of leaves) {
      const r = this.nodes[x], name = r.role === "constant" ? "constants" : r.name.split(/[[.]/)[0] || "inputs";
      const known = groups.get(name);
      if (known) known.push(x); else groups.set(name, [x]);
    }
    const moved = new Map<number, number>();
    for (const [name, members] of groups) {
      if (members.length < 4) continue;
      const id = this.addScope(`${scope.path}⟨${name}⟩`, name, scope.id);
      for (const x of members) moved.set(x, id);
    }
    const kept: number[] = [];
    for (const x of scope.nodes) {
      const home = moved.get(this.unit[x]);
      if (home === undefined) kept.push(x);
      else { this.scopeOf[x] = home; this.scopes[home].nodes.push(x); }
    }
    scope.nodes = kept;
  }

  /** Puts inputs that nothing reads, and constants that are outputs only, out of the way. */
  private groupUnused(): void {
    const outer = this.scopes[0];
    const unused = outer.nodes.filter((x) => this.unit[x] === x && !this.nodes[x].inputs.length && !this.users[x].length);
    if (unused.length < 4 || unused.length === this.nodes.length) return;
    const id = this.addScope("⟨unused⟩", "not used", 0), moved = new Set(unused);
    this.scopes[id].nodes = outer.nodes.filter((x) => moved.has(this.unit[x]));
    for (const x of this.scopes[id].nodes) this.scopeOf[x] = id;
    outer.nodes = outer.nodes.filter((x) => !moved.has(this.unit[x]));
  }

  private partName(chunk: number[]): string {
    const lines = new Map<string, number>();
    for (const x of chunk) {
      const at = this.nodes[x].source;
      if (at !== null) {
        const text = this.doc.sources[at].function + ":" + this.doc.sources[at].line;
        lines.set(text, (lines.get(text) ?? 0) + 1);
      }
    }
    const most = [...lines].sort((a, b) => b[1] - a[1])[0];
    return `%${chunk[0]}–%${chunk[chunk.length - 1]}` + (most ? ` · ${most[0]}` : "");
  }

  private countAll(): void {
    this.countNodes();
    for (const s of this.scopes) if (s.call && s.backward && !s.forward && !this.lanes) s.name = `gradient of ${s.name}`;
  }

  private countNodes(): void {
    for (const r of this.nodes) {
      if (this.folded[r.id]) continue;
      for (let s = this.scopeOf[r.id]; s >= 0; s = this.scopes[s].parent) {
        const scope = this.scopes[s];
        scope.count++;
        if (this.second[r.id]) scope.backward++; else scope.forward++;
      }
    }
  }

  private titleOf(r: NodeRecord): string {
    if (r.inputs.length === 0) return r.name || (r.role === "constant" ? r.attrs : this.word(r.op));
    const op = this.sign(r);
    const call = r.inputs.some((x) => this.folded[x])
      ? `${op}(${r.inputs.map((x) => (this.folded[x] ? short(this.nodes[x].attrs, 8) : "·")).join(", ")})`
      : op;
    const name = r.name || (this.plain ? r.variable : "");
    return name ? `${name} = ${call}` : call;
  }

  /** The names of nodes and operations: those that a reader of mathematics knows, or the real ones. */
  setPlain(plain: boolean): void {
    this.plain = plain;
    this.titles = this.nodes.map((r) => this.titleOf(r));
  }

  /** How the picture calls an operation: a function by its name, others by a word. */
  private sign(r: NodeRecord): string {
    const rule = r.rule === null ? undefined : this.doc.rules[r.rule];
    return !this.plain || (r.family === "elementwise" && rule?.forward === `${r.op}(‹0›)`) ? r.op : this.word(r.op);
  }

  /** What an operation is called. */
  word(op: string): string {
    return this.plain ? (this.doc.words?.[op] ?? op) : op;
  }

  /** Operations with how often each, by what they are called, the most frequent first. */
  counted(ops: Iterable<readonly [string, number]>, most: number): string {
    const sums = new Map<string, number>();
    for (const [op, n] of ops) sums.set(this.word(op), (sums.get(this.word(op)) ?? 0) + n);
    return [...sums].sort((a, b) => b[1] - a[1]).slice(0, most).map(([word, n]) => `${word} ${n}`).join(", ");
  }

  /** How formulas call a node: as its user does, else a gradient by what it is of, others v₁, v₂, … */
  label(id: number): string {
    const r = this.nodes[id];
    if (r.name) return r.name;
    if (r.role === "constant") return r.attrs;
    if (!this.plain) return `%${id}`;
    if (r.variable) return r.variable;
    const output = r.outputs.map((k) => this.doc.output_names[k]).find(Boolean);
    if (output) return output;
    const of = this.gradientOf.get(id);
    return of === undefined ? `v${lowered(id)}` : `∂${this.label(of)}`;
  }

  summary(id: number | null | undefined): Summary | undefined {
    return id === null || id === undefined ? undefined : this.doc.values?.[String(id)];
  }

  /** The number a node is, if it is one and was recorded. */
  number(id: number | null | undefined): number | undefined {
    const s = this.summary(id);
    return s?.data?.length === 1 && s.size === undefined ? toNumber(s.data[0]) : undefined;
  }

  norm(id: number | null | undefined): number | undefined {
    const s = this.summary(id);
    if (!s) return undefined;
    if (s.nan || s.inf) return NaN;
    if (s.norm !== undefined) return s.norm;
    return s.data?.length ? Math.hypot(...s.data.map(toNumber)) : undefined;
  }

  bytes(id: number): number | undefined {
    const m = /^(\w+)\[(.*)\]$/.exec(this.nodes[id].type);
    if (!m) return undefined;
    const width = m[1] === "bool" ? 1 : Number(/\d+/.exec(m[1])?.[0] ?? 32) / 8;
    const sizes = m[2] ? m[2].split(",").map(Number) : [];
    const size = sizes.reduce((a, b) => a * b, width);
    return Number.isFinite(size) ? size : undefined;
  }

  place(id: number): string { return this.placeOf(this.nodes[id].source); }

  /** File and line of a source. */
  placeOf(at: number | null | undefined): string {
    if (at === null || at === undefined) return "";
    const s = this.doc.sources[at];
    return `${s.file.split(/[\\/]/).pop()}:${s.line}`;
  }

  text(id: number): string {
    const known = this.haystack[id];
    if (known !== undefined) return known;
    const r = this.nodes[id], at = r.source === null ? null : this.doc.sources[r.source];
    const outputs = r.outputs.map((k) => this.doc.output_names[k]);
    const parts = [`%${id}`, r.name, r.variable, r.op, this.doc.words?.[r.op] ?? "", r.type, r.shape, r.scope, r.attrs, r.role, ...outputs];
    if (at) parts.push(`${at.file}:${at.line}`, at.function, at.text);
    return (this.haystack[id] = parts.join("\n").toLowerCase());
  }

  search(query: string): number[] {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const tests = words.map((w) => this.test(w));
    const found = this.nodes.filter((r) => tests.every((t) => t(r))).map((r) => r.id);
    const q = query.trim().toLowerCase();
    const rank = (id: number): number => {
      const r = this.nodes[id];
      return r.name.toLowerCase() === q || r.op === q ? 0 : r.name.toLowerCase().includes(q) ? 1 : this.folded[id] ? 3 : 2;
    };
    return found.sort((a, b) => rank(a) - rank(b) || a - b);
  }

  private test(word: string): (r: NodeRecord) => boolean {
    const m = /^(op|name|shape|type|scope|line|role):(.+)$/.exec(word);
    if (!m) return (r) => this.text(r.id).includes(word);
    const value = m[2];
    switch (m[1]) {
      case "op": return (r) => r.op === value;
      case "name": return (r) => r.name.toLowerCase().includes(value);
      case "shape": return (r) => r.shape.replace(/×/g, "x").toLowerCase() === value.replace(/[×,*]/g, "x");
      case "type": return (r) => r.type.toLowerCase().includes(value);
      case "scope": return (r) => r.scope.toLowerCase().includes(value);
      case "role": return (r) => r.role === value;
      default: return (r) => r.source !== null && this.doc.sources[r.source].line === Number(value);
    }
  }

  reach(start: number[], forward: boolean): Set<number> {
    const seen = new Set(start), todo = [...start];
    while (todo.length) {
      const id = todo.pop() as number;
      for (const x of forward ? this.users[id] : this.nodes[id].inputs) if (!seen.has(x)) { seen.add(x); todo.push(x); }
    }
    return seen;
  }

  get losses(): number[] {
    const ends = this.doc.outputs.filter((x) => !this.second[x] && !this.updating.has(x));
    if (ends.length) return ends;
    const first = this.doc.steps?.[0];
    if (first) return [first.node];
    const roots = new Set<number>(); // forward nodes that gradients belong to, and nothing forward uses
    for (const r of this.nodes) if (this.second[r.id] && this.unit[r.id] !== r.id) roots.add(this.unit[r.id]);
    return [...roots].filter((x) => this.users[x].every((u) => this.second[u]));
  }

  /** All paths between the loss and a node: forward, and the gradient nodes along them. */
  paths(id: number): Set<number> {
    const root = this.unit[id];
    const down = this.reach([root], true), up = this.reach(this.losses, false);
    const found = new Set<number>();
    for (const x of down) if (up.has(x) && !this.second[x]) found.add(x);
    const end = this.nodes[root].gradient;
    const before = end === null || end === undefined ? undefined : this.reach([end], false);
    for (const r of this.nodes) {
      if (this.second[r.id] && !this.folded[r.id] && found.has(this.unit[r.id]) && (!before || before.has(r.id))) found.add(r.id);
    }
    found.add(root);
    return found;
  }
}
