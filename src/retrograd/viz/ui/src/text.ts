// Numbers and names as people read them.

import type { Num, Summary } from "./types";

export function toNumber(x: Num | boolean): number {
  return typeof x !== "string" ? Number(x) : x === "nan" ? NaN : x === "inf" ? Infinity : -Infinity;
}

export function show(x: number | undefined, digits = 4): string {
  if (x === undefined) return "";
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const text = x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e6)
    ? x.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e")
    : String(Number(x.toPrecision(digits)));
  return text.replace(/^-/, "−").replace("e-", "e−");
}

export function short(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length - 1) + "…";
}

/** Of a path, the end says more than the beginning. */
export function tail(text: string, length: number): string {
  if (text.startsWith("∂") && text.length > length) return "∂" + tail(text.slice(1), length - 1);
  return text.length <= length || !/[.\]]/.test(text) ? short(text, length) : "…" + text.slice(text.length - length + 1);
}

/** As much of a text as is so wide, by a measure of width. */
export function fitted(text: string, width: number, measure: (text: string) => number, cut = short): string {
  for (let n = text.length, now = text; ; now = cut(text, n)) {
    const wide = measure(now);
    if (wide <= width || n <= 2) return now;
    n = Math.max(2, Math.min(n - 1, Math.ceil((n * width) / wide)));
  }
}

/** A number as an index: ₁₂. */
export function lowered(n: number): string {
  return [...String(n)].map((d) => "₀₁₂₃₄₅₆₇₈₉"[Number(d)]).join("");
}

export function count(n: number, what: string): string {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}

export function bytes(n: number | undefined | null): string {
  if (n === undefined || n === null) return "?";
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (n < 1000 || unit === "GB") return `${n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1000;
  }
  return "";
}

export function time(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return "?";
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  return ns < 1e6 ? `${(ns / 1e3).toPrecision(3)} µs` : `${(ns / 1e6).toPrecision(3)} ms`;
}

export function element(x: Num | boolean): string {
  return typeof x === "boolean" ? String(x) : show(toNumber(x));
}

/** The numbers of a small array, or its norm. */
export function brief(s: Summary | undefined): string {
  if (!s) return "";
  if (s.data && s.data.length <= 4) {
    const parts = s.data.map(element);
    return s.size === undefined ? parts[0] : `[${parts.join(", ")}]`;
  }
  if (s.nan || s.inf) return `${count((s.nan ?? 0) + (s.inf ?? 0), "non-finite value")}`;
  return s.norm === undefined ? "empty" : `‖·‖ = ${show(s.norm)}`;
}

/** A template with names or numbers in the places of ‹0›, ‹y›, ‹g›. */
export function fill(template: string, names: (key: string) => string): string {
  return template.replace(/‹(\w+)›/g, (_, key: string) => names(key));
}
