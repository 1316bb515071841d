// One step of the backward pass as a person writes it on paper: the rule, then the numbers.

import type { App } from "./app";
import { make } from "./dom";
import type { Model } from "./model";
import type { Part, Step } from "./types";
import { inline, isSentence, typeset } from "./math";
import { brief, fill, show } from "./text";

/** A name in a formula, whatever it is made of. */
export function named(name: string): string { return `‹${name.replace(/[‹›]/g, "")}›`; }

/** The local derivative of a rule that is the cotangent times something. */
export function factorOf(template: string): string | undefined {
  if (template === "‹g›") return "1";
  if (template === "-‹g›") return "-1";
  const found = /^(-?)‹g› ([*/]) (.+)$/.exec(template) ?? undefined;
  if (found && simple(found[3], found[2] === "/")) {
    return found[2] === "*" ? found[1] + found[3] : `${found[1]}1 / ${found[3]}`;
  }
  const behind = /^(.+) \* ‹g›$/.exec(template);
  return behind && simple(behind[1], false) ? behind[1] : undefined;
}

/** Whether a text without the cotangent is a single factor, or a product. */
function simple(text: string, single: boolean): boolean {
  if (text.includes("‹g›")) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "(") depth++;
    else if (text[i] === ")") depth--;
    else if (!depth && text[i] === " " && (/[-+<>=]/.test(text[i + 1]) || (single && /[*/]/.test(text[i + 1])))) return false;
  }
  return true;
}

/** What the gradients are of: the loss, by its name where that is short. */
export function lossName(m: Model): string {
  const first = m.doc.steps?.[0], name = first ? m.label(first.node) : "";
  return /^[\p{L}]\w{0,7}$/u.test(name) ? name : "L";
}

export class Lesson {
  private readonly app: App;
  private readonly loss: string;

  constructor(app: App) {
    this.app = app;
    this.loss = lossName(app.model);
  }

  private slope(id: number): string { return `∂${named(this.loss)} / ∂${named(this.app.model.label(id))}`; }

  /** The page before the first step. */
  start(node: number, upstream: number | null): HTMLElement {
    const m = this.app.model, one = brief(m.summary(upstream)) || "1";
    return make("div", {}, make("p", {}, "The pass begins at the end, where the gradient is"),
      typeset(`${this.slope(node)} = ${one}`), make("p", {}, "and visits every node once, after all that use it."));
  }

  step(step: Step, at: number): HTMLElement[] {
    const m = this.app.model, r = m.nodes[step.node], rule = r.rule === null ? undefined : m.doc.rules[r.rule];
    const self = m.label(r.id);
    const name = (key: string) => (key === "g" ? this.slope(r.id) : named(key === "y" ? self : m.label(r.inputs[Number(key)])));
    const out: HTMLElement[] = [make("p", { class: "lead" }, `Step ${at + 1}: `, make("b", {}, self), ` (${m.word(r.op)})`)];
    if (rule) {
      const value = r.inputs.every((x) => this.isNumber(x)) ? m.number(r.id) : undefined, numbers = value === undefined ? "" : ` = ${fill(rule.forward, (key) => this.number(step, key))} = ${show(value)}`;
      out.push(typeset(`${named(self)} = ${fill(rule.forward, name)}${sameNumber(numbers)}`));
    }
    const up = brief(m.summary(step.upstream));
    if (up) out.push(make("p", {}, "What came from behind it:"), line(this.slope(r.id), up));
    for (const part of step.parts) out.push(this.part(step, part, rule?.back[part[0]] ?? undefined, name));
    if (!step.parts.length) out.push(make("p", {}, "It passes nothing on."));
    return out;
  }

  private part(step: Step, [slot, to, part, sum]: Part, template: string | undefined, name: (key: string) => string): HTMLElement {
    const m = this.app.model, r = m.nodes[step.node], box = make("div", { class: "equation" });
    const left = this.slope(to), local = template && m.nodes[step.node].family === "elementwise" ? factorOf(template) : undefined;
    const result = brief(m.summary(part)), inputs = [step.upstream, ...r.inputs.filter((_, k) => template?.includes(`‹${k}›`))];
    const known = !result.startsWith("‖") && inputs.every((id) => id !== null && this.isNumber(id));
    if (r.inputs.filter((x) => x === to).length > 1) box.append(make("p", { class: "hint" }, `As operand ${slot + 1}:`));
    let text: string;
    if (template !== undefined && isSentence(template)) {
      box.append(make("p", {}, `${inline(left)}: ${template}`));
      if (result) box.append(line(left, result));
      return box;
    }
    if (template === undefined) text = `${left} = ${named(m.titles[part])}`;
    else if (local === undefined) text = `${left} = ${fill(template, name)}`;
    else text = `${left} = ${this.slope(r.id)} · ∂${named(m.label(r.id))} / ∂${named(m.label(to))}${local.includes("‹") ? ` = ${this.slope(r.id)} · ${grouped(fill(local, name))}` : known ? "" : ` = ${fill(template, name)}`}`;
    if (result && known && template !== undefined) {
      const numbers = local === undefined ? fill(template, (key) => this.number(step, key))
        : `${this.number(step, "g")} · ${grouped(fill(local, (key) => this.number(step, key)))}`;
      text += ` = ${numbers} = ${result}`;
      box.append(typeset(text));
    } else {
      box.append(typeset(text));
      if (result) box.append(line(left, result));
    }
    const total = brief(m.summary(sum));
    if (total && part !== sum) box.append(make("p", {}, "With what came by other ways:"), line(left, total));
    return box;
  }

  private isNumber(id: number): boolean {
    return this.app.model.number(id) !== undefined || this.app.model.nodes[id].role === "constant";
  }

  private number(step: Step, key: string): string {
    const m = this.app.model, r = m.nodes[step.node];
    const id = key === "g" ? step.upstream : key === "y" ? r.id : r.inputs[Number(key)];
    if (id === null) return "?";
    const text = m.summary(id) ? brief(m.summary(id)) : m.nodes[id].role === "constant" ? m.nodes[id].attrs : "?";
    return /^[−-]/.test(text) ? `(${text})` : text;
  }
}

/** `= 3 = 3` says it twice. */
function sameNumber(text: string): string {
  const m = /^ = (\S+) = (\S+)$/.exec(text);
  return m && m[1] === m[2] ? ` = ${m[1]}` : text;
}

function grouped(text: string): string { return /^-|^−| [-+/] /.test(text) && !/^\([^()]*\)$/.test(text) ? `(${text})` : text; }

/** An equation; of a side that is no formula, such as ‖·‖ = 3, as text. */
function line(left: string, right: string): HTMLElement {
  if (!/[‖[]|value|empty/.test(right)) return typeset(`${left} = ${right}`);
  return make("p", { class: "numbers" }, `${inline(left)}: ${right}`);
}
