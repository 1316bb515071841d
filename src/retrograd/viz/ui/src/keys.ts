// All that can be done with the page, in one table: it binds the keys, and the help is written from it.

import type { App, Spread } from "./app";
import type { Player } from "./player";
import { make } from "./dom";

export interface Action {
  keys: string[]; // as browsers call them; none of what is done by pointing
  shown: string; // how people call them
  text: string;
  group: Group;
  near?: boolean; // only with the focus on the picture, the player or nothing: elsewhere the key has a use of its own
  when?: () => boolean;
  run?: (key: string) => void;
}

const GROUPS = ["Find", "Move", "Show", "Backward pass", "Page", "By pointer"] as const;
type Group = (typeof GROUPS)[number];

/** What the page offers to the table beside the picture and the player. */
export interface Page {
  app: App; player: Player;
  search: () => void; next: (step: number) => void; theme: () => void; fold: () => void;
  colours: () => void; lists: () => void; take: () => void; help: () => void; backward: boolean;
}

export function actions(page: Page): Action[] {
  const { app, player } = page, spread = (s: Spread) => () => app.setSpread(app.spread === s ? "near" : s);
  const stepping = () => player.shown, still = () => !player.shown, playable = () => player.available;
  return [
    { keys: ["/"], shown: "/", text: "search", group: "Find", run: page.search },
    { keys: ["n", "N"], shown: "n, N", text: "next, previous result", group: "Find", run: (k) => page.next(k === "n" ? 1 : -1) },
    { keys: ["ArrowUp", "ArrowDown"], shown: "↑ ↓", text: "the next box that way", group: "Move", near: true, run: (k) => app.step(k === "ArrowUp" ? "up" : "down") },
    { keys: ["ArrowLeft", "ArrowRight"], shown: "← →", text: "the next box that way, while the player is closed", group: "Move", near: true, when: still, run: (k) => app.step(k === "ArrowLeft" ? "left" : "right") },
    { keys: ["k", "j"], shown: "k, j", text: "along an edge: to an input, to a user", group: "Move", run: (k) => app.along(k === "j") },
    { keys: ["h", "l"], shown: "h, l", text: "the previous, next of these inputs or users", group: "Move", run: (k) => app.sibling(k === "l" ? 1 : -1) },
    { keys: ["g"], shown: "g", text: "from a node to its gradient, and back", group: "Move", run: () => app.across() },
    { keys: ["Home", "End"], shown: "Home, End", text: "the first input, the loss, while the player is closed", group: "Move", near: true, when: still, run: (k) => app.end(k === "End") },
    { keys: ["Enter"], shown: "Enter", text: "open or close a scope, centre a node", group: "Show", near: true, run: () => app.enter() },
    { keys: ["o"], shown: "o", text: "open or close the scope that the selected node is in", group: "Show", run: () => app.toggleAround() },
    { keys: ["O", "C"], shown: "O, C", text: "open, close all scopes", group: "Show", run: (k) => void app.setAll(k === "O") },
    { keys: ["u"], shown: "u", text: "highlight all that the node is computed from", group: "Show", run: spread("upstream") },
    { keys: ["d"], shown: "d", text: "highlight all that uses it", group: "Show", run: spread("downstream") },
    { keys: ["p"], shown: "p", text: "highlight its paths to the loss and back", group: "Show", run: spread("paths") },
    { keys: ["f"], shown: "f", text: "fold the backward pass under the forward nodes, or show it beside them", group: "Show", when: () => page.backward, run: page.fold },
    { keys: ["c"], shown: "c", text: "choose what colours say", group: "Show", run: page.colours },
    { keys: ["+", "="], shown: "+", text: "zoom in", group: "Show", run: () => app.view.zoom(1.25) },
    { keys: ["-"], shown: "−", text: "zoom out", group: "Show", run: () => app.view.zoom(0.8) },
    { keys: ["0"], shown: "0", text: "the whole graph", group: "Show", run: () => app.view.fit() },
    { keys: ["Escape"], shown: "Esc", text: "close the player, otherwise select nothing", group: "Show", run: () => { if (player.shown) player.close(); else app.clear(); } },
    { keys: ["s"], shown: "s", text: "step through the backward pass, or close the player", group: "Backward pass", when: playable, run: () => player.toggleShown() },
    { keys: [" "], shown: "Space", text: "play, pause", group: "Backward pass", near: true, when: playable, run: () => player.toggle() },
    { keys: ["ArrowLeft", "ArrowRight"], shown: "← →", text: "one step back, forward", group: "Backward pass", near: true, when: stepping, run: (k) => player.move(k === "ArrowLeft" ? -1 : 1) },
    { keys: ["Home", "End"], shown: "Home, End", text: "to the start, to the end", group: "Backward pass", near: true, when: stepping, run: (k) => player.move(k === "Home" ? -Infinity : Infinity) },
    { keys: ["x"], shown: "x", text: "the graph as text: what is shown, in walking order, with edges and values", group: "Page", run: page.lists },
    { keys: ["m"], shown: "m", text: "take away: SVG, PNG, DOT, JSON, ONNX, a link", group: "Page", run: page.take },
    { keys: ["t"], shown: "t", text: "light or dark", group: "Page", run: page.theme },
    { keys: ["?"], shown: "?", text: "this help", group: "Page", run: page.help },
    { keys: [], shown: "click", text: "select, and read all about it", group: "By pointer" },
    { keys: [], shown: "double click", text: "open or close a scope, centre a node", group: "By pointer" },
    { keys: [], shown: "drag, wheel, pinch", text: "move, zoom; with Shift the wheel moves sideways", group: "By pointer" },
    { keys: [], shown: "point", text: "the edges of a box; a cell of a heat map: its index and value", group: "By pointer" },
  ];
}

/** Keys that do something to what has the focus, unless that is the picture. */
const OWN = "input, select, textarea, dialog, [contenteditable]";
const PRESSED = "button, summary, a, [role=tab], [role=tree]";

export class Keys {
  single = true; // whether keys of one letter act: who speaks to the computer turns them off
  readonly table: Action[];

  constructor(table: Action[], picture: HTMLElement, player: HTMLElement) {
    this.table = table;
    document.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || !picture.isConnected) return;
      const target = e.target as HTMLElement, slider = target.matches("input[type=range]") && (e.key === " " || e.key === "Escape");
      if (target.closest(OWN) && !slider) return;
      if (!this.single && e.key.length === 1 && e.key !== " ") return;
      const pressed = target.closest(PRESSED) && (e.key === "Enter" || e.key === " ");
      const near = !pressed && (target === picture || target === document.body || player.contains(target));
      const action = this.table.find((a) => a.run && a.keys.includes(e.key) && (!a.near || near) && (a.when?.() ?? true));
      if (!action) return;
      e.preventDefault();
      action.run?.(e.key);
    });
  }

  /** The help: a list of keys for each group of actions. */
  help(): HTMLElement[] {
    const found = GROUPS.map((group) => make("section", {},
      make("h3", {}, group),
      make("dl", { class: "keys" }, ...this.table.filter((a) => a.group === group)
        .flatMap((a) => [make("dt", {}, make("kbd", {}, a.shown)), make("dd", {}, a.text)]))));
    const single = make("input", { type: "checkbox", id: "single" });
    single.checked = this.single;
    single.addEventListener("change", () => { this.single = single.checked; });
    return [...found, make("p", {}, make("label", { for: "single", class: "choice" }, single, " keys of one letter act"))];
  }
}
