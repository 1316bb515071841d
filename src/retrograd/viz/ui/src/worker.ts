import { Layouter, type Structure } from "./layout";
import { load, type Layered } from "./layered";

interface Question { structure?: Structure; engine?: Blob; open?: Uint8Array; beside?: boolean; ticket?: number }

let layouter: Layouter | undefined;
let engine: Promise<Layered | undefined> = Promise.resolve(undefined);

self.onmessage = (event: MessageEvent<Question>) => {
  answer(event.data).catch((error) => setTimeout(() => { throw error; })); // for the page to hear of it
};

async function answer({ structure, engine: packed, open, beside, ticket }: Question): Promise<void> {
  // where WebAssembly is not allowed, the simple layering is what there is
  if (packed) engine = load(packed).catch(() => undefined);
  if (structure) layouter = new Layouter(structure);
  if (!layouter || !open) return;
  layouter.engine = await engine;
  self.postMessage({ ticket, layered: layouter.engine !== undefined, placed: layouter.place(open, beside ?? true) });
}
