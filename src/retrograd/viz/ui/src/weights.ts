// A weight: the way of its gradient, from the loss to its update, and its numbers over a run.

import type { App } from "./app";
import { make } from "./dom";
import type { Model } from "./model";
import { show, toNumber } from "./text";
import type { Num } from "./types";

/** Whether a node is an input whose gradient is in the graph. */
export function isWeight(model: Model, id: number): boolean {
  const r = model.nodes[id];
  return r !== undefined && (r.role === "input" || r.role === "parameter") && typeof r.gradient === "number";
}

/** All that the gradient of a weight passes: forward to the loss, back from there, and its update. */
export function gradientPath(model: Model, id: number): Set<number> {
  const { nodes, second, folded } = model, found = new Set([id]);
  const down = model.reach([id], true), up = model.reach(model.losses, false);
  for (const x of down) if (up.has(x) && !second[x] && !model.updating.has(x)) found.add(x);
  const end = nodes[id].gradient as number;
  for (const x of model.reach([end], false)) if (second[x] && !folded[x]) found.add(x);
  for (const rule of model.doc.updates?.rules ?? []) for (const m of rule.members) {
    if (m.parameter === id) for (const x of m.nodes) if (!folded[x]) found.add(x);
  }
  return found;
}

const KINDS = [["weight", "Norm of the weight"], ["gradient", "Norm of its gradient"], ["update", "Norm of its update"]] as const;

/** The norms of a weight over the steps of a run, as curves; nothing where no run is known. */
export function overTime(app: App, id: number): HTMLElement[] {
  const run = app.model.doc.run, numbers = run?.parameters[String(id)];
  if (!run || !numbers) return [];
  const parts: HTMLElement[] = [make("h3", {}, `Over the run · ${run.steps.length.toLocaleString("en")} steps logged`)];
  for (const [kind, name] of KINDS) {
    const values = numbers[kind];
    if (values?.some((x) => x !== null)) parts.push(curve(name, run.steps, values, kind));
  }
  return parts;
}

/** Logarithmic where the numbers span more than a factor of fifty. */
function curve(name: string, steps: number[], values: (Num | null)[], kind: string): HTMLElement {
  const points = values.map((x, i): [number, number] => [steps[i], x === null ? NaN : toNumber(x)]).filter(([, y]) => Number.isFinite(y));
  const bad = values.filter((x) => x !== null && !Number.isFinite(toNumber(x))).length;
  const w = 280, h = 64, figure = make("figure", { class: "curve-of" });
  const last = points[points.length - 1];
  const text = last ? `${show(last[1])} at step ${last[0].toLocaleString("en")}` : "";
  figure.append(make("figcaption", {}, make("span", {}, name), make("b", {}, text)));
  if (bad) figure.append(make("p", { class: "bad" }, `not finite at ${bad} of these steps`));
  if (points.length < 2) return figure;
  const ys = points.map(([, y]) => y), low = Math.min(...ys), high = Math.max(...ys), log = low > 0 && high / low > 50;
  const f = (y: number) => (log ? Math.log(y) : y), x0 = points[0][0], span = Math.max(1, last[0] - x0), tall = f(high) - f(low) || 1;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${name}: from ${show(ys[0])} to ${show(last[1])}, between ${show(low)} and ${show(high)}`);
  path.setAttribute("d", points.map(([x, y], i) => `${i ? "L" : "M"}${(((x - x0) / span) * (w - 4) + 2).toFixed(1)} ${(h - 3 - ((f(y) - f(low)) / tall) * (h - 6)).toFixed(1)}`).join(""));
  path.setAttribute("class", kind);
  svg.append(path);
  figure.append(svg, make("p", { class: "hint" }, `${show(low)} to ${show(high)}${log ? ", logarithmic" : ""}`));
  return figure;
}
