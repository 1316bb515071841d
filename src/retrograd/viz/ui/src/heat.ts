// An array as a heat map: vectors as strips, matrices, and tiles of what has more axes. Zero is the
// ground, and equal magnitudes of both signs are equally strong.

import { dark } from "./colour";
import { make } from "./dom";
import type { HeatMap, Summary } from "./types";
import { show, toNumber } from "./text";

const WIDTH = 284, HEIGHT = 240; // pixels that there are in the panel
const STRIP = 32; // cells of a vector in a line
const LARGEST = 24, GAP = 4; // of a cell, between tiles

/** float16 from base64. */
export function halves(text: string): Float64Array {
  const bytes = atob(text), found = new Float64Array(bytes.length >> 1);
  for (let i = 0; i < found.length; i++) {
    const bits = bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8), power = (bits >> 10) & 31, part = bits & 1023;
    const size = power === 31 ? (part ? NaN : Infinity) : power ? 2 ** (power - 15) * (1 + part / 1024) : part * 2 ** -24;
    found[i] = bits & 0x8000 ? -size : size;
  }
  return found;
}

/** The colour of a share of the largest magnitude, from −1 to 1. */
export function diverging(share: number): string {
  if (Number.isNaN(share)) return dark() ? "#facc15" : "#a16207";
  const t = Math.sqrt(Math.min(1, Math.abs(share))), ground = dark() ? [28, 32, 38] : [255, 255, 255]; // the root, to see what is small
  const end = share < 0 ? (dark() ? [96, 165, 250] : [29, 78, 216]) : dark() ? [251, 146, 60] : [194, 65, 12];
  return `rgb(${ground.map((g, i) => Math.round(g + (end[i] - g) * t)).join(" ")})`;
}

interface Frame { across: number; cell: [number, number]; tiles: number; rows: number; columns: number; strip: boolean }

/** How cells are laid out: how many tiles, or cells of a strip, stand side by side, and how large. */
function frameOf(map: HeatMap): Frame {
  const [tiles, rows, columns] = map.cells;
  if (tiles === 1 && rows === 1) {
    const across = Math.min(columns, STRIP), side = Math.min(LARGEST, Math.floor(WIDTH / across));
    return { across, cell: [side, Math.min(side, 16)], tiles, rows, columns, strip: true };
  }
  const gap = tiles > 1 ? GAP : 0, fits = (n: number) => Math.max(1, Math.min(tiles, Math.floor((WIDTH + gap) / (n * columns + gap))));
  let side = LARGEST;
  while (side > 1 && (side * columns > WIDTH || Math.ceil(tiles / fits(side)) * (side * rows + gap) > HEIGHT)) side--;
  const cell: [number, number] = [Math.min(side, WIDTH / columns), Math.min(side, HEIGHT / rows)];
  if (tiles === 1) cell[0] = Math.min(WIDTH / columns, Math.max(cell[0], 8)); // few columns are easier to see broad
  return { across: fits(cell[0]), cell: [cell[0], rows < 8 ? Math.max(cell[1], 6) : cell[1]], tiles, rows, columns, strip: false };
}

export function heatMap(s: Summary, map: HeatMap): HTMLElement {
  const values = halves(map.f16), f = frameOf(map), [w, h] = f.cell, canvas = make("canvas", { tabindex: "0" });
  const corner = (i: number): [number, number] => {
    if (f.strip) return [(i % f.across) * w, Math.floor(i / f.across) * (h + 1)];
    const each = f.rows * f.columns, t = Math.floor(i / each), r = Math.floor((i % each) / f.columns), c = i % f.columns;
    return [(t % f.across) * (f.columns * w + GAP) + c * w, Math.floor(t / f.across) * (f.rows * h + GAP) + r * h];
  };
  const lines = Math.ceil((f.strip ? f.columns : f.tiles) / f.across);
  const wide = f.strip ? f.across * w : f.across * (f.columns * w + GAP) - GAP, high = f.strip ? lines * (h + 1) - 1 : lines * (f.rows * h + GAP) - GAP;
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  canvas.width = Math.ceil(wide * ratio);
  canvas.height = Math.ceil(high * ratio);
  canvas.style.aspectRatio = `${wide} / ${high}`;
  canvas.style.width = `${wide}px`;
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D, output = make("output", { "aria-live": "polite" });
  const paint = (marked = -1): void => {
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--box");
    pen.fillRect(0, 0, wide, high);
    for (let i = 0; i < values.length; i++) {
      const [x, y] = corner(i);
      pen.fillStyle = diverging(values[i]);
      pen.fillRect(x, y, w + 0.3, h + 0.3);
      if (!Number.isFinite(values[i])) cross(pen, x, y, w, h);
    }
    if (marked < 0) return;
    const [x, y] = corner(marked);
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, Math.max(1, w - 2), Math.max(1, h - 2));
  };
  let at = -1;
  const read = (i: number): void => {
    at = i;
    paint(i);
    output.textContent = i < 0 ? hint(map) : `${place(map, i)} ${text(s, map, values, i)}`;
  };
  const under = (e: { clientX: number; clientY: number }): number => {
    const box = canvas.getBoundingClientRect(), x = ((e.clientX - box.left) / box.width) * wide, y = ((e.clientY - box.top) / box.height) * high;
    if (f.strip) { const i = Math.floor(y / (h + 1)) * f.across + Math.floor(x / w); return i < f.columns ? i : -1; }
    const [tw, th] = [f.columns * w + GAP, f.rows * h + GAP], t = Math.floor(y / th) * f.across + Math.floor(x / tw);
    const c = Math.floor((x % tw) / w), r = Math.floor((y % th) / h);
    return t < f.tiles && c < f.columns && r < f.rows ? (t * f.rows + r) * f.columns + c : -1;
  };
  canvas.addEventListener("pointermove", (e) => { const i = under(e); if (i !== at) read(i); });
  canvas.addEventListener("pointerdown", (e) => read(under(e)));
  canvas.addEventListener("pointerleave", () => read(-1));
  canvas.addEventListener("keydown", (e) => {
    const line = f.strip ? f.across : f.columns, by: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -line, ArrowDown: line, Home: -Infinity, End: Infinity };
    if (!(e.key in by)) return;
    e.preventDefault();
    read(Math.max(0, Math.min(values.length - 1, at < 0 && Number.isFinite(by[e.key]) ? 0 : at + by[e.key])));
  });
  canvas.addEventListener("blur", () => read(-1));
  const least = s.min ?? NaN, most = s.max ?? NaN;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `heat map of ${map.shape.join("×")}, from ${show(least)} to ${show(most)}; arrow keys read its cells`);
  read(-1);
  return make("figure", { class: "heat" }, canvas, make("figcaption", {}, output, ...legend(s, map)));
}

/** What is not finite is crossed out, so that colour is not all that tells it. */
function cross(pen: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  if (w < 5 || h < 5) return;
  pen.strokeStyle = dark() ? "#000" : "#fff";
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x + 1, y + 1); pen.lineTo(x + w - 1, y + h - 1);
  pen.moveTo(x + w - 1, y + 1); pen.lineTo(x + 1, y + h - 1);
  pen.stroke();
}

function legend(s: Summary, map: HeatMap): HTMLElement[] {
  const bar = make("span", { class: "scale", "aria-hidden": "true" }), stops = [];
  for (let k = -8; k <= 8; k++) stops.push(diverging(k / 8));
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ends = make("span", { class: "ends" }, make("span", {}, show(-map.scale, 3)), make("span", {}, "0"), make("span", {}, show(map.scale, 3)));
  const crossed = (s.nan ?? 0) + (s.inf ?? 0) > 0 ? [make("span", {}, "Crossed: not finite.")] : [];
  return s.min === undefined ? crossed : [bar, ends, ...crossed];
}

/** What a cell is, where it is not one element; and what is left out. */
function hint(map: HeatMap): string {
  const [tiles, rows, columns] = map.cells, [down, across] = map.block, all = map.shape.slice(0, -2).reduce((a, b) => a * b, 1);
  const parts = [`${map.shape.join("×")}`];
  if (tiles < all) parts.push(`the first ${tiles} of ${all} tiles`);
  if (down * across > 1) parts.push(`${rows}×${columns} cells, each the largest of ${down}×${across}`);
  return parts.join(", ");
}

/** The index of a cell in the array, or the indices that it covers. */
function place(map: HeatMap, i: number): string {
  const [, rows, columns] = map.cells, [down, across] = map.block, shape = map.shape;
  const span = (from: number, by: number, size: number) => (by > 1 ? `${from * by}…${Math.min(size, (from + 1) * by) - 1}` : String(from));
  const c = span(i % columns, across, shape[shape.length - 1] ?? 1);
  if (shape.length < 2) return `[${shape.length ? c : ""}]`;
  const r = span(Math.floor(i / columns) % rows, down, shape[shape.length - 2]);
  let tile = Math.floor(i / columns / rows);
  const before = shape.slice(0, -2).reverse().map((n) => { const k = tile % n; tile = Math.floor(tile / n); return k; }).reverse();
  return `[${[...before, r, c].join(", ")}]`;
}

function text(s: Summary, map: HeatMap, values: Float64Array, i: number): string {
  const exact = s.data?.[i];
  if (exact !== undefined && map.block.every((b) => b === 1)) return `= ${typeof exact === "boolean" ? exact : show(toNumber(exact), 6)}`;
  return `${map.block.every((b) => b === 1) ? "=" : "largest"} ${show(values[i] * map.scale, 3)}`;
}
