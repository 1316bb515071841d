// What is known of a training run, from the events that Python writes.

import type { Num, Summary } from "./types";
import { toNumber } from "./text";

export interface RunEvent {
  step: number; time: number; scalars?: Record<string, Num>; epoch?: number; norms?: Record<string, Num>;
  parameters?: Record<string, Record<string, Num>>; summaries?: Record<string, Summary>;
  memory?: Record<string, number>; texts?: string[]; message?: string; started?: number;
}
export interface Point { step: number; time: number; value: number }
export interface Text { step: number; text: string }

const WHILE = 0.25; // seconds that a speed is measured over: single steps tell of the clock

export class Run {
  readonly series = new Map<string, Point[]>();
  readonly parameters = new Map<string, Map<string, Point[]>>(); // kind of norm, parameter
  readonly histograms = new Map<string, Summary>();
  messages: string[] = [];
  texts: Text[] = [];
  breaks: { step: number; time: number }[] = []; // where the run went on
  loaded = false;
  count = 0; // events of its log that it was given
  shown = false;
  step = -1;
  private epochs: [number, number][] = [];
  private since?: { step: number; time: number };

  constructor(readonly name: string, readonly place: number) {}

  clear(): void {
    this.series.clear(); this.parameters.clear(); this.histograms.clear();
    this.messages = []; this.texts = []; this.breaks = []; this.epochs = [];
    this.step = -1; this.since = undefined;
  }

  take(e: RunEvent): void {
    if (e.started !== undefined) this.begins(e.step, e.time);
    for (const [name, v] of Object.entries(e.scalars ?? {})) this.add(this.series, name, e, toNumber(v));
    for (const [name, v] of Object.entries(e.memory ?? {})) this.add(this.series, name === "rss" ? "memory" : "planned memory", e, v);
    for (const [name, v] of Object.entries(e.norms ?? {})) this.norm("gradient", name, e, toNumber(v));
    for (const [name, norms] of Object.entries(e.parameters ?? {})) {
      for (const [kind, v] of Object.entries(norms)) this.norm(kind, name, e, toNumber(v));
      const { update, weight } = norms;
      if (update !== undefined && weight !== undefined && toNumber(weight) > 0) this.norm("ratio", name, e, toNumber(update) / toNumber(weight));
    }
    for (const [name, s] of Object.entries(e.summaries ?? {})) this.histograms.set(name, s);
    for (const text of e.texts ?? []) this.texts.push({ step: e.step, text });
    if (e.message) this.messages.push(e.message);
    if (e.epoch !== undefined && (!this.epochs.length || this.epochs[this.epochs.length - 1][0] < e.step)) this.epochs.push([e.step, e.epoch]);
    if (e.scalars || e.norms || e.parameters) this.step = Math.max(this.step, e.step);
    if (e.scalars || e.norms) this.speed(e);
  }

  private norm(kind: string, name: string, e: RunEvent, value: number): void {
    let all = this.parameters.get(kind);
    if (!all) { all = new Map(); this.parameters.set(kind, all); }
    this.add(all, name, e, value);
  }

  private add(all: Map<string, Point[]>, name: string, e: RunEvent, value: number): void {
    const point = { step: e.step, time: e.time, value }, known = all.get(name);
    if (!known) all.set(name, [point]);
    else if (known[known.length - 1].step === e.step) known[known.length - 1] = point;
    else known.push(point);
  }

  private speed(e: RunEvent): void {
    if (!this.since) this.since = e;
    else if (e.time - this.since.time >= WHILE && e.step > this.since.step) {
      this.add(this.series, "steps per second", e, (e.step - this.since.step) / (e.time - this.since.time));
      this.since = e;
    }
  }

  /** The run begins, or goes on behind a step: later ones are done again. */
  private begins(step: number, time: number): void {
    this.since = undefined;
    if (this.step < 0) return;
    for (const all of [this.series, ...this.parameters.values()]) {
      for (const [name, points] of all) {
        const kept = points.filter((p) => p.step <= step);
        if (kept.length) all.set(name, kept); else all.delete(name);
      }
    }
    this.texts = this.texts.filter((t) => t.step <= step);
    this.epochs = this.epochs.filter(([s]) => s <= step);
    this.breaks = this.breaks.filter((b) => b.step < step);
    if (step > 0) this.breaks.push({ step, time });
    this.step = Math.min(this.step, step);
  }

  /** The epoch of a step, between those that are known. */
  epoch(step: number): number {
    const known = this.epochs;
    if (!known.length) return NaN;
    let low = 0, high = known.length - 1;
    while (low < high) { const mid = (low + high) >> 1; if (known[mid][0] < step) low = mid + 1; else high = mid; }
    const [s1, e1] = known[low], [s0, e0] = low > 0 ? known[low - 1] : [0, 0];
    return s1 === s0 ? e1 : e0 + ((e1 - e0) * (step - s0)) / (s1 - s0);
  }
}
