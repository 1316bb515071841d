// What the colour of a node says, and the legend of it.

import { apart, within } from "./changes";
import type { Model } from "./model";
import { bytes, show, time, toNumber } from "./text";

export const MODES = ["role", "op", "dtype", "scope", "time", "memory", "gradient norm", "value norm", "kernel", "change", "difference", "digits lost"] as const;
export type Mode = (typeof MODES)[number];

export interface Entry { colour: string; text: string }
export interface Scheme { of: (id: number) => string; legend: Entry[]; missing: string; grouped?: boolean; ofScope?: (scope: number) => string | undefined }

const ROLES: Record<string, [number, number, string]> = {
  input: [42, 90, "input"], parameter: [32, 90, "parameter"], constant: [220, 8, "constant"],
  forward: [212, 75, "forward"], gradient: [330, 70, "gradient"], update: [145, 50, "update"],
};
const CHANGES: Record<string, [number, number, string]> = {
  same: [220, 8, "unchanged"], added: [140, 60, "added"], changed: [42, 90, "changed"], moved: [265, 60, "moved"], removed: [0, 75, "removed"],
};

export function dark(): boolean {
  return document.documentElement.dataset.theme === "dark";
}

/** Whether the reader has chosen all colours: then boxes have the ground's, and outlines tell them apart. */
export function forced(): boolean {
  return window.matchMedia?.("(forced-colors: active)").matches ?? false;
}

export function tone(hue: number, saturation = 65): string {
  if (forced()) return "Canvas";
  return dark() ? `hsl(${hue} ${saturation * 0.55}% 27%)` : `hsl(${hue} ${saturation}% 89%)`;
}

const GREY = () => (forced() ? "Canvas" : dark() ? "hsl(220 8% 24%)" : "hsl(220 10% 93%)");

/** From pale to strong. */
function heat(share: number): string {
  const t = Math.max(0, Math.min(1, share));
  if (forced()) return "Canvas";
  const [low, middle, high] = dark() ? DARK : LIGHT, [from, to, at] = t < 0.5 ? [low, middle, 2 * t] : [middle, high, 2 * t - 1];
  return `rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * at)).join(" ")})`;
}

// Between these, text has contrast everywhere, which is not so along a circle of hues.
const LIGHT = [[226, 238, 252], [252, 222, 150], [242, 136, 96]], DARK = [[31, 48, 74], [84, 54, 112], [150, 42, 40]];

export function scheme(model: Model, mode: Mode): Scheme {
  switch (mode) {
    case "op": return listed(model, (id) => model.nodes[id].op, "");
    case "dtype": return listed(model, (id) => model.nodes[id].type.split("[")[0], "");
    case "scope": return listed(model, (id) => outer(model, id), "outside of scopes");
    case "kernel": return { ...listed(model, (id) => (model.kernelOf[id] < 0 ? "" : `kernel ${model.kernelOf[id]}`), "no kernel of its own"), grouped: true };
    case "difference": {
      const far = apart(model), most = within(model, (id) => (far.has(id) ? id : undefined), (a, b) => ((far.get(b) as number) > (far.get(a) as number) ? b : a));
      const found = graded(model, (id) => far.get(id), (x) => `${show(100 * x, 2)} %`, "not in both");
      return { ...found, ofScope: (s) => { const id = most.get(s); return id === undefined ? undefined : found.of(id); } };
    }
    case "digits lost": {
      const lost = (id: number) => { const e = model.doc.rounding?.[id]; return e ? toNumber(e.lost) : undefined; };
      const most = within(model, (id) => (lost(id) === undefined ? undefined : id), (a, b) => ((lost(b) as number) > (lost(a) as number) ? b : a));
      const found = graded(model, lost, (x) => `${show(x, 2)} digits`, "exact or not computed", true);
      return { ...found, ofScope: (s) => { const id = most.get(s); return id === undefined ? undefined : found.of(id); } };
    }
    case "change": {
      const kinds = within(model, (id) => model.nodes[id].change ?? "same", (a, b) => (a === b || b === "same" ? a : a === "same" ? b : "changed"));
      return { ...fixed(model, CHANGES, (id) => model.nodes[id].change ?? "same"), ofScope: (s) => { const [hue, full] = CHANGES[kinds.get(s) ?? "same"]; return tone(hue, full); } };
    }
    case "time": return graded(model, (id) => {
      const k = model.doc.kernels?.[model.kernelOf[id]];
      return k ? (k.ns ?? k.least_ns ?? undefined) : undefined;
    }, time, "not measured");
    case "memory": return graded(model, (id) => model.bytes(id), bytes, "size not known");
    case "gradient norm": return graded(model, (id) => model.norm(model.second[id] ? id : model.nodes[id].gradient), show, "not recorded");
    case "value norm": return graded(model, (id) => model.norm(id), show, "not recorded");
    default: return fixed(model, ROLES, (id) => model.nodes[id].role);
  }
}

function outer(model: Model, id: number): string {
  const path = model.nodes[id].scope || model.scopes[model.scopeOf[id]].path;
  const m = /^(?:[^.[]+[.]?)?[^.]*/.exec(path);
  return m ? m[0] : path;
}

function fixed(model: Model, table: Record<string, [number, number, string]>, key: (id: number) => string): Scheme {
  const used = new Set(model.nodes.filter((r) => !model.folded[r.id]).map((r) => key(r.id)));
  const entries = Object.entries(table).filter(([k]) => used.has(k));
  const colours = new Map(entries.map(([k, [hue, s]]) => [k, tone(hue, s)]));
  return {
    of: (id) => colours.get(key(id)) ?? GREY(), missing: GREY(),
    legend: entries.map(([k, [, , text]]) => ({ colour: colours.get(k) as string, text })),
  };
}

function listed(model: Model, key: (id: number) => string, none: string): Scheme {
  const counts = new Map<string, number>();
  for (const r of model.nodes) if (!model.folded[r.id]) counts.set(key(r.id), (counts.get(key(r.id)) ?? 0) + 1);
  const sorted = [...counts.keys()].filter((k) => k).sort((a, b) => (counts.get(b) as number) - (counts.get(a) as number));
  const colours = new Map(sorted.map((k, i) => [k, tone((i * 137.5 + 205) % 360, 70)]));
  const legend = sorted.slice(0, 14).map((k) => ({ colour: colours.get(k) as string, text: `${k} (${counts.get(k)})` }));
  if (sorted.length > 14) legend.push({ colour: "transparent", text: `and ${sorted.length - 14} more` });
  if (none && counts.has("")) legend.push({ colour: GREY(), text: none });
  return { of: (id) => colours.get(key(id)) ?? GREY(), missing: GREY(), legend };
}

function graded(model: Model, value: (id: number) => number | undefined, text: (x: number) => string, none: string, linear = false): Scheme {
  const found = model.nodes.map((r) => (model.folded[r.id] ? undefined : value(r.id)));
  const known = found.filter((v): v is number => v !== undefined && Number.isFinite(v) && v > 0);
  const bad = forced() ? "Canvas" : dark() ? "hsl(0 85% 36%)" : "hsl(0 90% 66%)", zero = forced() ? "Canvas" : dark() ? "hsl(265 30% 30%)" : "hsl(265 60% 92%)";
  const legend: Entry[] = [];
  const low = linear ? 0 : known.reduce((a, b) => Math.min(a, b), Infinity), high = known.reduce((a, b) => Math.max(a, b), 0);
  const share = (v: number) => (linear ? v / (high || 1) : high > low ? Math.log(v / low) / Math.log(high / low) : 0.5);
  if (known.length) for (const t of high > low ? [0, 0.25, 0.5, 0.75, 1] : [0.5]) {
    legend.push({ colour: heat(t), text: text(linear ? high * t : high > low ? low * (high / low) ** t : low) });
  }
  if (!linear && found.some((v) => v === 0)) legend.push({ colour: zero, text: "zero" });
  if (found.some((v) => v !== undefined && !Number.isFinite(v))) legend.push({ colour: bad, text: "NaN or infinite" });
  if (found.some((v) => v === undefined)) legend.push({ colour: GREY(), text: none });
  const colours = found.map((v) => (v === undefined ? GREY() : !Number.isFinite(v) ? bad : v === 0 && !linear ? zero : heat(share(v))));
  return { of: (id) => colours[id] ?? GREY(), legend, missing: GREY() };
}
