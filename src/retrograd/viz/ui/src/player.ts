// Playing the backward pass: one node after the other, with the numbers of each step.

import type { App } from "./app";
import { button, make } from "./dom";
import type { Step } from "./types";
import { brief, fill, show } from "./text";

export class Player {
  private readonly app: App;
  private readonly bar: HTMLElement;
  private readonly page: HTMLElement;
  private readonly steps: Step[];
  private at = -1; // the step shown; -1 before the first
  private timer = 0;
  private readonly slider: HTMLInputElement;
  private readonly play: HTMLButtonElement;
  private readonly counter: HTMLElement;
  private readonly speed: HTMLSelectElement;

  constructor(app: App, bar: HTMLElement, page: HTMLElement) {
    this.app = app;
    this.bar = bar;
    this.page = page;
    this.steps = app.model.doc.steps ?? [];
    this.slider = make("input", { type: "range", min: "0", max: String(this.steps.length), value: "0", "aria-label": "Step of the backward pass" });
    this.slider.addEventListener("input", () => { this.stop(); void this.go(Number(this.slider.value) - 1); });
    this.play = button("▶", "Play the backward pass", () => this.toggle(), { class: "primary" });
    this.counter = make("span", { class: "counter" });
    this.speed = make("select", { "aria-label": "Speed" }, ...["0.5", "1", "2", "5", "20"].map((s) => make("option", { value: s, ...(s === "1" ? { selected: "" } : {}) }, `${s}×`)));
    bar.append(
      make("strong", {}, "Backward pass"),
      button("|◀", "To the start", () => { this.stop(); void this.go(-1); }),
      button("◁", "One step back", () => { this.stop(); void this.go(this.at - 1); }),
      this.play,
      button("▷", "One step forward", () => { this.stop(); void this.go(this.at + 1); }),
      button("▶|", "To the end", () => { this.stop(); void this.go(this.steps.length - 1); }),
      this.slider, this.counter, this.speed,
      button("✕", "Close the player", () => this.close()));
    bar.addEventListener("keydown", (e) => { if (e.key === "Escape") this.close(); });
    bar.hidden = page.hidden = true;
  }

  get available(): boolean { return this.steps.length > 0; }

  toggleShown(): void {
    if (this.bar.hidden) this.show(); else this.close();
  }

  show(): void {
    this.bar.hidden = this.page.hidden = false;
    document.body.classList.add("playing");
    void this.go(this.at < 0 ? 0 : this.at);
  }

  close(): void {
    this.stop();
    this.bar.hidden = this.page.hidden = true;
    document.body.classList.remove("playing");
    this.app.view.marks.step = this.app.view.marks.sums = undefined;
    this.app.view.redraw();
  }

  private toggle(): void {
    if (this.timer) { this.stop(); return; }
    if (this.at >= this.steps.length - 1) this.at = -1;
    this.play.textContent = "❚❚";
    this.play.title = "Pause";
    const tick = () => {
      this.timer = window.setTimeout(async () => {
        await this.go(this.at + 1);
        if (this.timer && this.at < this.steps.length - 1) tick(); else this.stop();
      }, 900 / Number(this.speed.value));
    };
    tick();
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    this.play.textContent = "▶";
    this.play.title = "Play the backward pass";
  }

  async go(step: number): Promise<void> {
    const { app } = this, m = app.model;
    this.at = Math.max(-1, Math.min(this.steps.length - 1, step));
    this.slider.value = String(this.at + 1);
    this.counter.textContent = `${this.at + 1} / ${this.steps.length}`;
    const now = this.steps[this.at];
    const sums = new Map<number, string>();
    const first = this.steps[0];
    if (first) sums.set(first.node, brief(m.summary(first.upstream)));
    for (let k = 0; k <= this.at; k++) for (const [, to, , sum] of this.steps[k].parts) sums.set(to, brief(m.summary(sum)) || "·");
    app.view.marks.sums = sums;
    app.view.marks.step = now && { node: now.node, parents: [...new Set(now.parts.map((p) => p[1]))] };
    if (now) {
      await this.reveal(now);
      app.announce(`step ${this.at + 1} of ${this.steps.length}: ${m.titles[now.node]}`);
    }
    this.write(now);
    app.view.redraw();
  }

  private async reveal(step: Step): Promise<void> {
    const { app } = this, m = app.model;
    let changed = false;
    for (let s = m.scopeOf[step.node]; s > 0; s = m.scopes[s].parent) if (!app.open[s]) { app.open[s] = 1; changed = true; }
    if (changed) await app.layout();
    const box = app.view.box(step.node);
    if (!box) return;
    if (app.view.camera.scale < 0.5) app.centre(step.node); else app.reveal(step.node);
  }

  /** One step as a page of a textbook: the rule, with names and then with numbers. */
  private write(step: Step | undefined): void {
    const m = this.app.model;
    this.page.replaceChildren(make("h2", {}, "Backward, step by step"));
    if (!step) {
      const end = m.label(this.steps[0].node);
      this.page.append(make("p", {}, `The pass starts from ∂${end} = ${brief(m.summary(this.steps[0].upstream)) || "1"} and visits every node once, after all of its users.`));
      return;
    }
    const r = m.nodes[step.node], rule = r.rule === null ? undefined : m.doc.rules[r.rule];
    const outputs = r.outputs.filter((k) => m.doc.output_names[k]).map((k) => m.doc.output_names[k]);
    const self = r.name || outputs[0] || `%${r.id}`;
    const name = (key: string) => (key === "g" ? `∂${self}` : key === "y" ? self : m.label(r.inputs[Number(key)]));
    const number = (key: string): string => {
      const id = key === "g" ? step.upstream : key === "y" ? r.id : r.inputs[Number(key)];
      if (id === null) return "∂";
      const constant = m.nodes[id].role === "constant" ? m.nodes[id].attrs : "";
      const text = m.summary(id) ? brief(m.summary(id)) : constant;
      return text.startsWith("−") ? `(${text})` : text;
    };
    const known = (id: number | null) => id !== null && (m.number(id) !== undefined || m.nodes[id].role === "constant");
    const visit = make("p", { class: "lead" }, `Step ${this.at + 1}: visit `, make("b", {}, self), rule ? ` = ${fill(rule.forward, name)}` : "");
    if (m.number(r.id) !== undefined && rule) visit.append(` = ${fill(rule.forward, number)} = ${show(m.number(r.id))}`);
    this.page.append(visit);
    const up = brief(m.summary(step.upstream));
    this.page.append(make("p", {}, "Upstream cotangent: ", make("b", {}, `∂${self}`), up ? ` = ${up}` : ""));
    for (const [slot, to, part, sum] of step.parts) {
      const template = rule?.back[slot];
      const line = make("div", { class: "equation" });
      const target = m.label(to);
      line.append(make("p", {}, make("b", {}, `∂${target} += `), template ? fill(template, name) : m.titles[part]));
      const inputs = [step.upstream, ...r.inputs.filter((x) => template?.includes(`‹${r.inputs.indexOf(x)}›`))];
      const result = brief(m.summary(part));
      if (template && result) {
        const filled = inputs.every(known) ? ` = ${fill(template, number)}` : "";
        line.append(make("p", { class: "numbers" }, `${filled} = ${result}`.trim()));
      }
      const total = brief(m.summary(sum));
      if (total) line.append(make("p", { class: "sum" }, part === sum ? `∂${target} is now ${total}` : `added to what was there, ∂${target} is now ${total}`));
      this.page.append(line);
    }
    if (!step.parts.length) this.page.append(make("p", {}, "It passes nothing on."));
  }
}
