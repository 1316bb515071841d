import { Layouter, type Structure } from "./layout";

let layouter: Layouter | undefined;

self.onmessage = (event: MessageEvent<{ structure?: Structure; open?: Uint8Array; beside?: boolean; ticket?: number }>) => {
  const { structure, open, beside, ticket } = event.data;
  if (structure) layouter = new Layouter(structure);
  if (layouter && open) self.postMessage({ ticket, placed: layouter.place(open, beside ?? true) });
};
