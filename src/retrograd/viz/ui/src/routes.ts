// Edges that go around boxes: the ways that the layered engine found, as Bézier curves.

export type Pen = Pick<CanvasRenderingContext2D, "moveTo" | "bezierCurveTo">;
/** x and y of a start, and of three points for each curve from there. */
export type Route = Float32Array;

const STEEP = 16; // how far an edge goes straight where it begins and ends

/** The way between the points where an edge is drawn to begin and to end, which its box decides. One
 *  that enters a scope goes to the start of the way first. */
export function follow(pen: Pen, r: Route, [x0, y0, x1, y1]: [number, number, number, number], enters = false): void {
  const last = r.length - 2;
  pen.moveTo(x0, y0);
  if (enters) {
    const bend = Math.max(STEEP, Math.min(110, (r[1] - y0) / 2));
    pen.bezierCurveTo(x0, y0 + bend, r[0], r[1] - bend, r[0], r[1]);
    [x0, y0] = r;
  }
  for (let k = 2; k < r.length; k += 6) {
    const first = k === 2, end = k + 4 === last;
    pen.bezierCurveTo(
      first ? x0 : r[k], first ? Math.max(r[k + 1], y0 + STEEP) : r[k + 1],
      end ? x1 : r[k + 2], end ? Math.min(r[k + 3], y1 - STEEP) : r[k + 3],
      end ? x1 : r[k + 4], end ? y1 : r[k + 5]);
  }
}

/** The corners of all that a way touches. */
export function bounds(r: Route): [number, number, number, number] {
  let l = Infinity, t = Infinity, right = -Infinity, b = -Infinity;
  for (let k = 0; k < r.length; k += 2) {
    l = Math.min(l, r[k]); right = Math.max(right, r[k]);
    t = Math.min(t, r[k + 1]); b = Math.max(b, r[k + 1]);
  }
  return [l, t, right, b];
}

/** A point of a way about in its middle. */
export function middle(r: Route): [number, number] {
  const curves = (r.length - 2) / 6, k = 6 * (curves >> 1);
  if (curves > 1) return [r[k], r[k + 1]];
  return [0, 1].map((c) => (r[c] + 3 * r[c + 2] + 3 * r[c + 4] + r[c + 6]) / 8) as [number, number];
}

/** A pen that writes the data of an SVG path. */
export class PathPen {
  text = "";
  moveTo(x: number, y: number): void { this.text += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  bezierCurveTo(...points: number[]): void { this.text += `C${points.map((p) => p.toFixed(1)).join(" ")}`; }
}
