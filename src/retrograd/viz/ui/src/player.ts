// Playing the backward pass: one node after the other, with the numbers of each step.

import type { App } from "./app";
import { button, make } from "./dom";
import { Lesson } from "./lesson";
import type { Step } from "./types";
import { brief } from "./text";

export class Player {
  private readonly app: App;
  private readonly bar: HTMLElement;
  private readonly page: HTMLElement;
  private readonly steps: Step[];
  private readonly lesson: Lesson;
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
    this.lesson = new Lesson(app);
    this.slider = make("input", { type: "range", min: "0", max: String(this.steps.length), value: "0", "aria-label": "Step of the backward pass" });
    this.slider.addEventListener("input", () => { this.stop(); void this.go(Number(this.slider.value) - 1); });
    this.play = button("▶", "Play the backward pass", () => this.toggle(), { class: "primary" });
    this.counter = make("span", { class: "counter" });
    this.speed = make("select", { "aria-label": "Speed" }, ...["0.5", "1", "2", "5", "20"].map((s) => make("option", { value: s, ...(s === "1" ? { selected: "" } : {}) }, `${s}×`)));
    bar.append(
      make("strong", {}, "Backward pass"),
      button("|◀", "To the start", () => this.move(-Infinity)),
      button("◁", "One step back", () => this.move(-1)),
      this.play,
      button("▷", "One step forward", () => this.move(1)),
      button("▶|", "To the end", () => this.move(Infinity)),
      this.slider, this.counter, this.speed,
      button("✕", "Close the player", () => this.close()));
    bar.hidden = page.hidden = true;
  }

  get shown(): boolean { return !this.bar.hidden; }

  get available(): boolean { return this.steps.length > 0; }

  toggleShown(): void {
    if (this.bar.hidden) this.show(); else this.close();
  }

  show(): void {
    if (!this.available) { this.app.announce("there is no backward pass to step through"); return; }
    this.bar.hidden = this.page.hidden = false;
    document.body.classList.add("playing");
    void this.go(this.at < 0 ? 0 : this.at);
  }

  close(): void {
    this.stop();
    this.bar.hidden = this.page.hidden = true;
    document.body.classList.remove("playing");
    this.app.view.marks.step = this.app.view.marks.sums = undefined;
    for (const f of this.app.onStep) f();
    this.app.view.redraw();
  }

  /** So many steps onwards, or back; infinitely many are to an end. */
  move(by: number): void {
    this.stop();
    void this.go(Number.isFinite(by) ? this.at + by : by < 0 ? -1 : this.steps.length - 1);
  }

  /** Plays, or pauses. */
  toggle(): void {
    if (!this.shown) this.show();
    if (this.timer) { this.stop(); return; }
    if (this.at >= this.steps.length - 1) this.at = -1;
    this.play.textContent = "❚❚";
    this.play.title = "Pause";
    this.play.setAttribute("aria-label", "Pause");
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
    this.play.setAttribute("aria-label", "Play the backward pass");
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
    if (now) await this.reveal(now);
    this.write(now);
    for (const f of app.onStep) f();
    app.announce(this.spoken(now));
    app.view.redraw();
  }

  /** A step as it is read aloud. */
  private spoken(step: Step | undefined): string {
    const said = [...this.page.querySelectorAll("p, [aria-label]")].map((e) => e.getAttribute("aria-label") ?? e.textContent ?? "");
    if (!step) return said.join(" ");
    return `step ${this.at + 1} of ${this.steps.length}: ${said.map((t) => t.replace(/^Step \d+: /, "").replace(/:$/, "")).join("; ")}`;
  }

  private async reveal(step: Step): Promise<void> {
    const { app } = this, m = app.model;
    let changed = false;
    for (let s = m.scopeOf[step.node]; s > 0; s = m.scopes[s].parent) if (!app.open[s]) { app.open[s] = 1; changed = true; }
    if (changed) await app.layout();
    const box = app.view.box(step.node);
    if (!box) return;
    if (app.view.camera.scale < 0.8) app.approach(step.node); else app.reveal(step.node);
  }

  private write(step: Step | undefined): void {
    this.page.replaceChildren(make("h2", {}, "Backward, step by step"));
    if (!step) {
      this.page.append(this.lesson.start(this.steps[0].node, this.steps[0].upstream));
      return;
    }
    this.page.append(...this.lesson.step(step, this.at));
  }
}
