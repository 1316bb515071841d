// Layouts from the worker, or, where a browser does not start one, from this thread, which then does
// without the layered engine.

import packed from "virtual:graphviz";
import { Layouter, type Placed, type Structure } from "./layout";
import type { Model } from "./model";
import LayoutWorker from "./worker?worker&inline";

export function structureOf(model: Model): Structure {
  const starts = new Int32Array(model.nodes.length + 1);
  model.nodes.forEach((r, i) => (starts[i + 1] = starts[i] + r.inputs.length));
  const inputs = new Int32Array(starts[model.nodes.length]);
  model.nodes.forEach((r, i) => inputs.set(r.inputs, starts[i]));
  return {
    count: model.nodes.length, scopeOf: model.scopeOf, unit: model.unit, folded: model.folded,
    second: model.second, inputs, starts,
    parents: Int32Array.from(model.scopes, (s) => s.parent),
    backward: Int32Array.from(model.scopes, (s) => s.backward),
    lanes: model.lanes ? { scopes: model.lanes.scopes, lane: model.lanes.lane } : undefined,
  };
}

/** Graphviz, still compressed. */
function binary(): Blob {
  const text = atob(packed), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Blob([bytes]);
}

export class Engine {
  layered = false; // whether the layered engine answered, for tests and the curious
  private worker: Worker | undefined;
  private local: Layouter | undefined;
  private structure: Structure | undefined;
  private ticket = 0;
  private waiting = new Map<number, (placed: Placed) => void>();

  /** Starts the worker, which gets its engine ready while the model is made. */
  constructor() {
    try {
      this.worker = new LayoutWorker();
      this.worker.onmessage = (event: MessageEvent<{ ticket: number; layered: boolean; placed: Placed }>) => {
        this.layered = event.data.layered;
        this.waiting.get(event.data.ticket)?.(event.data.placed);
        this.waiting.delete(event.data.ticket);
      };
      this.worker.onerror = (event) => { event.preventDefault(); this.giveUp(); };
      this.worker.postMessage({ engine: binary() });
    } catch {
      this.giveUp();
    }
  }

  /** Says what is to be laid out. */
  take(model: Model): void {
    this.structure = structureOf(model);
    this.worker?.postMessage({ structure: this.structure });
  }

  private giveUp(): void {
    this.worker = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    if (this.last) for (const resolve of waiting) resolve(this.compute(...this.last));
  }

  private last: [Uint8Array, boolean] | undefined;

  private compute(open: Uint8Array, beside: boolean): Placed {
    this.local ??= new Layouter(this.structure as Structure);
    return this.local.place(open, beside);
  }

  place(open: Uint8Array, beside: boolean): Promise<Placed> {
    this.last = [open.slice(), beside];
    const worker = this.worker;
    if (!worker) return Promise.resolve(this.compute(open, beside));
    const ticket = ++this.ticket;
    return new Promise((resolve) => {
      this.waiting.set(ticket, resolve);
      worker.postMessage({ ticket, open: open.slice(), beside });
    });
  }
}
