// Formulas: text as Python writes it, read once, and set as MathML or as a line of text.

type Tree =
  | { kind: "number" | "name" | "sign"; text: string }
  | { kind: "row"; parts: Tree[] }
  | { kind: "fraction"; above: Tree; below: Tree }
  | { kind: "power" | "index"; base: Tree; at: Tree }
  | { kind: "fenced"; open: string; close: string; inside: Tree }
  | { kind: "call"; name: Tree; inside: Tree };

// A number, a name (in ‹ ›: whatever it is made of), a sign.
const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?:e[+−-]?\d+)?)|(‹[^›]*›|\p{L}[\p{L}\p{N}]*|…)|(<=|>=|->|\S))/uy;
const BIG = new Set(["Σ", "Π"]);
const SPELLED: Record<string, string> = { "<=": "≤", ">=": "≥", "->": "→", "*": "·", "-": "−" };
const CLOSING: Record<string, string> = { "(": ")", "[": "]", "|": "|", "‖": "‖" };
const WORDS = new Set(["if", "else", "and", "or", "with", "of", "made", "each"]);

class Reader {
  private readonly tokens: string[] = [];
  private at = 0;

  constructor(text: string) {
    TOKEN.lastIndex = 0;
    for (let m = TOKEN.exec(text); m && m[0]; m = TOKEN.exec(text)) this.tokens.push(m[1] ?? m[2] ?? m[3]);
  }

  private peek(): string | undefined { return this.tokens[this.at]; }
  private take(): string { return this.tokens[this.at++]; }

  /** A row up to a closing sign, or to the end. */
  row(close?: string): Tree {
    const parts: Tree[] = [];
    while (this.peek() !== undefined && this.peek() !== close) parts.push(...this.term(close));
    return parts.length === 1 ? parts[0] : { kind: "row", parts };
  }

  /** Factors side by side; a slash makes a fraction of what stands before and behind it. */
  private term(close?: string): Tree[] {
    const parts: Tree[] = [];
    for (let t = this.peek(); t !== undefined && t !== close; t = this.peek()) {
      if (t === "/") {
        this.take();
        const above: Tree = parts.length === 1 ? parts[0] : { kind: "row", parts: [...parts] };
        const big = this.peek() !== undefined && BIG.has(this.peek() as string);
        const below = big ? this.summed(close) : this.factor();
        parts.splice(0, parts.length, { kind: "fraction", above: unfenced(above), below: unfenced(below) });
      } else if (/^(\+|-|−|=|<|>|<=|>=|->|,|;|:|if|else|and|or|≠)$/u.test(t)) {
        if (parts.length) return parts;
        return [{ kind: WORDS.has(t) ? "name" : "sign", text: this.take() }];
      } else if (t === "*" || t === "·") parts.push({ kind: "sign", text: this.take() });
      else parts.push(this.factor());
    }
    return parts;
  }

  /** A sum over all that follows, up to the next sign. */
  private summed(close?: string): Tree {
    return { kind: "row", parts: [this.factor(), ...this.term(close)] };
  }

  private factor(): Tree {
    let base = this.atom();
    for (let t = this.peek(); t === "_" || t === "^" || (t === "(" && callable(base)); t = this.peek()) {
      if (t === "(") { base = { kind: "call", name: base, inside: this.atom() }; continue; }
      this.take();
      const at = this.peek() === "(" ? unfenced(this.atom()) : this.atom();
      base = t === "_" ? { kind: "index", base, at } : { kind: "power", base, at };
    }
    return base;
  }

  /** `∂y / ∂x`, which is one thing. */
  private slope(): Tree {
    const above: Tree = { kind: "row", parts: [{ kind: "sign", text: "∂" }, this.atom()] };
    if (this.peek() !== "/" || this.tokens[this.at + 1] !== "∂") return above;
    this.take();
    this.take();
    return { kind: "fraction", above, below: { kind: "row", parts: [{ kind: "sign", text: "∂" }, this.atom()] } };
  }

  private atom(): Tree {
    const t = this.take();
    if (t === undefined) return { kind: "row", parts: [] };
    if (t in CLOSING) {
      const close = CLOSING[t], inside = this.row(close);
      if (this.peek() === close) this.take();
      return { kind: "fenced", open: t, close, inside };
    }
    if (t === "∂") return this.slope();
    if (/^\d/.test(t)) return { kind: "number", text: t };
    if (t[0] === "‹") return { kind: "name", text: t.slice(1, -1) };
    return /^[\p{L}…]/u.test(t) ? { kind: "name", text: t } : { kind: "sign", text: t };
  }
}

function callable(t: Tree): boolean {
  const name = t.kind === "index" || t.kind === "power" ? t.base : t;
  return name.kind === "name" && (name.text.length > 1 || name.text === "σ" || name.text === "Φ" || name.text === "d") && !WORDS.has(name.text);
}

function unfenced(t: Tree): Tree { return t.kind === "fenced" && t.open === "(" ? t.inside : t; }

const NS = "http://www.w3.org/1998/Math/MathML";
function el(tag: string, ...children: (Element | string)[]): Element {
  const e = document.createElementNS(NS, tag);
  e.append(...children);
  return e;
}

function set(t: Tree): Element {
  switch (t.kind) {
    case "number": return el("mn", t.text);
    case "name": return WORDS.has(t.text) ? el("mtext", `\u00a0${t.text}\u00a0`) : el("mi", t.text);
    case "sign": return el("mo", SPELLED[t.text] ?? t.text);
    case "row": return el("mrow", ...spaced(t.parts));
    case "fraction": return el("mfrac", set(t.above), set(t.below));
    case "power": return el("msup", t.base.kind === "fenced" ? fenced(t.base) : set(t.base), set(t.at));
    case "index":
      return t.base.kind === "sign" || (t.base.kind === "name" && BIG.has(t.base.text))
        ? el("munder", el("mo", (t.base as { text: string }).text === "Σ" ? "∑" : "∏"), set(t.at)) : el("msub", set(t.base), set(t.at));
    case "fenced": // of a fraction the bar says as much
      return t.open === "(" && t.inside.kind === "fraction" ? set(t.inside) : fenced(t);
    case "call": {
      const inside = unfenced(t.inside);
      if (t.name.kind === "name" && t.name.text === "sqrt") return el("msqrt", set(inside));
      if (t.name.kind === "name" && t.name.text === "exp") return el("msup", el("mi", "e"), set(inside));
      return el("mrow", set(t.name), el("mo", "\u2061"), t.inside.kind === "fenced" ? fenced(t.inside) : set(t.inside));
    }
  }
}

function fenced(t: Tree & { kind: "fenced" }): Element {
  return el("mrow", el("mo", t.open), set(t.inside), el("mo", t.close));
}

/** Factors that stand side by side have some space between them. */
function spaced(parts: Tree[]): Element[] {
  const out: Element[] = [];
  parts.forEach((t, i) => {
    const before = parts[i - 1];
    if (before && t.kind !== "sign" && before.kind !== "sign" && !isWord(t) && !isWord(before)) {
      const gap = el("mspace");
      gap.setAttribute("width", "0.2em");
      out.push(gap);
    }
    const e = set(t);
    if (t.kind === "sign" && (!before || before.kind === "sign")) e.setAttribute("form", "prefix");
    out.push(e);
  });
  return out;
}

function isWord(t: Tree): boolean { return t.kind === "name" && WORDS.has(t.text); }

/** Whether a rule is told in words. */
export function isSentence(text: string): boolean { return /^(made of|the backward pass) /.test(text); }

/** A formula as MathML, each of its lines below the other, and of `a = b = c` each equality. What it
 *  says is also in the `aria-label`. */
export function typeset(text: string): HTMLElement {
  const box = document.createElement("div");
  box.className = "math";
  for (const line of text.split("\n")) {
    const sides = equalities(new Reader(line).row());
    sides.forEach((side, k) => {
      const math = el("math", set(side));
      math.setAttribute("display", "block");
      math.setAttribute("class", k ? "further" : "");
      if (k) math.setAttribute("aria-hidden", "true"); else math.setAttribute("aria-label", inline(line));
      box.append(math);
    });
  }
  return box;
}

/** `a = b` and, if there is more, `= c`. */
function equalities(t: Tree): Tree[] {
  if (t.kind !== "row") return [t];
  const at = t.parts.flatMap((x, i) => (x.kind === "sign" && x.text === "=" ? [i] : [])).slice(1);
  if (t.parts.some((x) => isWord(x) || (x.kind === "sign" && x.text === ","))) return [t];
  return [0, ...at].map((from, k) => ({ kind: "row", parts: t.parts.slice(from, at[k]) }));
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹", LOWERED = "₀₁₂₃₄₅₆₇₈₉";
const SUBSCRIPTS: Record<string, string> = { i: "ᵢ", j: "ⱼ", k: "ₖ", n: "ₙ", t: "ₜ", p: "ₚ", h: "ₕ", l: "ₗ", m: "ₘ", x: "ₓ", a: "ₐ", o: "ₒ", s: "ₛ", ",": ",", "+": "₊", "-": "₋", "−": "₋", " ": "" };

function lowered(text: string): string | undefined {
  const all = [...text].map((c) => (/\d/.test(c) ? LOWERED[Number(c)] : SUBSCRIPTS[c]));
  return all.every((c) => c !== undefined) ? all.join("") : undefined;
}

/** A formula as a line of text, with the signs that there are for powers and indices. */
export function inline(text: string): string {
  return text
    .replace(/_\(([^()]*)\)/g, (whole, at: string) => lowered(at) ?? whole)
    .replace(/_(\p{L}|\d)(?!\p{L})/gu, (whole, at: string) => lowered(at) ?? whole)
    .replace(/\^(\d)(?!\d|\.)/g, (_, d: string) => RAISED[Number(d)])
    .replace(/\^T\b/g, "ᵀ")
    .replace(/[‹›]/g, "").replace(/∂([^ ]+) \/ ∂/g, "∂$1/∂")
    .replace(/<=/g, "≤").replace(/>=/g, "≥").replace(/->/g, "→")
    .replace(/ \* /g, "·");
}
