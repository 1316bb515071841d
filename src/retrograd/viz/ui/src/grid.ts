// Which boxes and edges lie in a part of the world, without looking at all of them.

export const CELL_W = 1200, CELL_H = 700;
const MOST = 12; // cells that one thing is entered in; larger ones are always looked at

export class Grid {
  private readonly cells = new Map<number, number[]>();
  private readonly large: number[] = [];
  private readonly count: number;

  constructor(count: number) { this.count = count; }

  private static key(i: number, j: number): number { return i * 1_000_003 + j; }

  add(id: number, left: number, top: number, right: number, bottom: number): void {
    const i0 = Math.floor(left / CELL_W), i1 = Math.floor(right / CELL_W), j0 = Math.floor(top / CELL_H), j1 = Math.floor(bottom / CELL_H);
    if ((i1 - i0 + 1) * (j1 - j0 + 1) > MOST) { this.large.push(id); return; }
    for (let i = i0; i <= i1; i++) for (let j = j0; j <= j1; j++) {
      const key = Grid.key(i, j), known = this.cells.get(key);
      if (known) known.push(id); else this.cells.set(key, [id]);
    }
  }

  /** Ids that may lie in an area, each once; undefined where it is cheaper to look at all. */
  near([left, top, right, bottom]: [number, number, number, number]): Iterable<number> | undefined {
    const i0 = Math.floor(left / CELL_W), i1 = Math.floor(right / CELL_W), j0 = Math.floor(top / CELL_H), j1 = Math.floor(bottom / CELL_H);
    if (this.count < 2000 || (i1 - i0 + 1) * (j1 - j0 + 1) > this.cells.size / 3) return undefined;
    const found = new Set(this.large);
    for (let i = i0; i <= i1; i++) for (let j = j0; j <= j1; j++) for (const id of this.cells.get(Grid.key(i, j)) ?? []) found.add(id);
    return found;
  }
}
