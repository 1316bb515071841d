// The page: builds what people use around the picture.

import "./style.css";
import { App } from "./app";
import { MODES, scheme } from "./colour";
import { dashboard } from "./dashboard";
import { Details } from "./details";
import { button, make } from "./dom";
import { Engine } from "./engine";
import { Model } from "./model";
import { Player } from "./player";
import { Sidebar } from "./sidebar";
import * as take from "./take";
import { count } from "./text";
import type { GraphDocument } from "./types";

const KEYS: [string, string][] = [
  ["/", "search"], ["arrows", "go to the next box that way"], ["Enter", "open or close a scope, or centre a node"], ["o", "open or close the scope of the selected node"],
  ["u, d, p", "highlight upstream, downstream, paths to the loss"], ["+, −, 0", "zoom in, out, to fit"], ["Esc", "select nothing"],
  ["s", "step through the backward pass"], ["n, N", "next, previous result"], ["t", "light or dark"], ["?", "this help"],
];

function theme(value: string): void {
  document.documentElement.dataset.theme = value;
}

function prefersDark(): boolean {
  return window.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}

function explore(doc: GraphDocument, root: HTMLElement): void {
  const began = performance.now();
  const engine = new Engine(), model = new Model(doc);
  const live = make("div", { class: "unseen", "aria-live": "polite", role: "status" });
  const canvas = make("canvas", { tabindex: "0", role: "application", "aria-label": "Graph. Arrow keys go from box to box, Enter opens a scope, slash searches, question mark lists all keys." });
  const stage = make("div", { class: "stage" }, canvas);
  const side = make("nav", { class: "sidebar", "aria-label": "Lists" }), panel = make("aside", { class: "panel", "aria-label": "Details" });
  const stepping = make("aside", { class: "panel stepping", "aria-label": "Step", "aria-live": "polite" });
  const bar = make("div", { class: "player", role: "toolbar", "aria-label": "Player" });
  const legend = make("div", { class: "legend", "aria-label": "Legend" });
  const header = make("header");
  root.append(header, make("main", {}, side, make("div", { class: "middle" }, stage, legend, bar), panel, stepping), live);

  const app = new App(model, engine, canvas, live);
  const details = new Details(app, panel), sidebar = new Sidebar(app, side), player = new Player(app, bar, stepping);

  const search = make("input", { type: "search", placeholder: "Search name, op, shape, source  ( / )", "aria-label": "Search", autocomplete: "off", spellcheck: "false", title: "Words, or op:mul name:weight shape:3x4 type:f32 line:12 scope:attention role:parameter" });
  let found: number[] = [], place = -1;
  const find = (query: string) => { search.value = query; found = query.trim() ? sidebar.find(query) : []; place = -1; if (!query.trim()) sidebar.open("outline"); };
  const next = (step: number) => {
    if (!found.length) return;
    place = (place + step + found.length) % found.length;
    const id = found[place];
    void app.focus(model.folded[id] ? model.users[id][0] ?? id : id);
  };
  let typing = 0;
  search.addEventListener("input", () => { clearTimeout(typing); typing = window.setTimeout(() => find(search.value), 120); });
  search.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { clearTimeout(typing); if (place < 0) find(search.value); next(e.shiftKey ? -1 : 1); }
    if (e.key === "Escape") { find(""); canvas.focus(); }
  });
  app.onFind = find;

  const modes = make("select", { "aria-label": "Colour by", title: "Colour by" });
  for (const mode of MODES) {
    const has = mode === "change" ? Boolean(doc.compared) : mode === "kernel" || mode === "time" ? Boolean(doc.kernels) : mode.endsWith("norm") ? Boolean(doc.values) : true;
    if (has) modes.append(make("option", { value: mode }, `colour: ${mode}`));
  }
  modes.value = app.mode;
  modes.addEventListener("change", () => app.setMode(modes.value));
  const drawLegend = () => {
    modes.value = app.mode;
    legend.replaceChildren(...scheme(model, app.mode).legend.map((e) => {
      const chip = make("span", { class: "chip" });
      chip.style.background = e.colour;
      return make("span", { class: "entry" }, chip, e.text);
    }));
  };
  app.onScheme.push(drawLegend);
  drawLegend();

  const backward = model.nodes.some((r) => model.second[r.id]);
  const fold = button("Fold backward", "Show the backward pass folded under the forward nodes, or beside them", () => {
    void app.setBeside(!app.beside);
    fold.setAttribute("aria-pressed", String(!app.beside));
  }, { "aria-pressed": "false" });
  fold.hidden = !backward;
  const stepper = button("Step", "Step through the backward pass (s)", () => player.toggleShown());
  stepper.hidden = !player.available;
  const menu = makeMenu("Take away", [
    ["SVG picture", () => take.svg(app)], ["PNG picture", () => void take.png(app)], ["DOT for Graphviz", () => take.dot(app)], ["JSON document", () => take.json(app)],
    ["ONNX model", () => take.onnx(app, (title, text) => dialog(title, make("p", {}, text)))],
    ["Link to the node", () => {
      const text = take.link(app);
      dialog("Link to the selected node", make("input", { class: "wide", readonly: "", value: text, "aria-label": "Link" }));
      navigator.clipboard?.writeText(text).catch(() => undefined);
    }],
  ]);
  const help = () => dialog("Keys", make("dl", { class: "keys" }, ...KEYS.flatMap(([k, t]) => [make("dt", {}, k), make("dd", {}, t)])));
  const flip = () => { theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); app.restyle(); };
  header.append(
    make("h1", { title: doc.name || "graph" }, doc.name || "graph"),
    make("p", { class: "stats" }, `${count(model.nodes.length, "node")}, ${count(model.nodes.reduce((n, r) => n + r.inputs.length, 0), "edge")}`),
    search, make("div", { class: "tools", role: "toolbar", "aria-label": "Tools" },
      fold, stepper, modes, button("−", "Zoom out (-)", () => app.view.zoom(0.8)), button("+", "Zoom in (+)", () => app.view.zoom(1.25)),
      button("Fit", "Fit the picture into the window (0)", () => app.view.fit()), menu, button("◐", "Light or dark (t)", flip), button("?", "Keys (?)", help)));

  document.addEventListener("keydown", (e) => {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || target.closest("input, select, textarea, dialog")) return;
    const act: Record<string, () => void> = {
      "/": () => { search.focus(); search.select(); }, "?": help, t: flip, n: () => next(1), N: () => next(-1), s: () => { if (player.available) player.show(); },
    };
    if (!act[e.key]) return;
    e.preventDefault();
    act[e.key]();
  });

  void app.start().then(async () => {
    const linked = /^#node=(\d+)$/.exec(location.hash), id = linked ? Number(linked[1]) : (doc.focus ?? undefined);
    if (id !== undefined && id < model.nodes.length) await app.focus(id);
    details.show();
    document.documentElement.dataset.ready = String(Math.round(performance.now() - began));
  });
  window.addEventListener("hashchange", () => {
    const linked = /^#node=(\d+)$/.exec(location.hash);
    if (linked && Number(linked[1]) !== app.selected && Number(linked[1]) < model.nodes.length) void app.focus(Number(linked[1]));
  });
  (window as unknown as { explorer: unknown }).explorer = { app, player }; // for tests and the curious
}

function makeMenu(title: string, items: [string, () => void][]): HTMLElement {
  const box = make("details", { class: "menu" }, make("summary", { role: "button" }, title));
  const list = make("div", { class: "items", role: "menu" });
  for (const [text, act] of items) list.append(make("button", { type: "button", role: "menuitem", click: () => { box.open = false; act(); } }, text));
  box.append(list);
  box.addEventListener("keydown", (e) => { if (e.key === "Escape") { box.open = false; (box.firstElementChild as HTMLElement).focus(); } });
  document.addEventListener("pointerdown", (e) => { if (!box.contains(e.target as Node)) box.open = false; });
  return box;
}

function dialog(title: string, ...content: Node[]): void {
  const box = make("dialog", { "aria-label": title }, make("h2", {}, title), ...content, make("form", { method: "dialog" }, make("button", {}, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

/** Reloads when the server says that the file has changed. */
function follow(): void {
  const token = new URLSearchParams(location.search).get("token");
  if (!token || !location.protocol.startsWith("http")) return;
  const events = new EventSource(`events?token=${encodeURIComponent(token)}`);
  events.addEventListener("changed", () => location.reload());
}

function start(): void {
  theme(prefersDark() ? "dark" : "light");
  const root = document.getElementById("explorer") as HTMLElement;
  try {
    const data = JSON.parse((document.getElementById("data") as HTMLElement).textContent ?? "");
    if (data.format === "retrograd-dashboard") { dashboard(data, root); return; }
    if (data.format !== "retrograd-graph" || data.version !== 2) throw new Error(`this page cannot show ${String(data.format)} version ${String(data.version)}`);
    explore(data as GraphDocument, root);
    follow();
  } catch (error) {
    root.replaceChildren(make("p", { class: "problem", role: "alert" }, `The graph cannot be shown: ${error instanceof Error ? error.message : String(error)}`));
    throw error;
  }
}

start();
