// The page: builds what people use around the picture.

import "./style.css";
import { App } from "./app";
import { MODES, scheme } from "./colour";
import { dashboard } from "./dashboard";
import { Details } from "./details";
import { button, make } from "./dom";
import { Engine } from "./engine";
import { actions, Keys } from "./keys";
import { Model } from "./model";
import { Player } from "./player";
import { Sidebar } from "./sidebar";
import * as take from "./take";
import { count } from "./text";
import type { GraphDocument } from "./types";

function theme(value: string): void {
  document.documentElement.dataset.theme = value;
}

function prefersDark(): boolean {
  return window.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}

function explore(doc: GraphDocument, root: HTMLElement, inLanes = true): void {
  const engine = new Engine(), model = new Model(doc, inLanes);
  const live = make("div", { class: "unseen", "aria-live": "polite", role: "status" });
  const canvas = make("canvas", { tabindex: "0", role: "application", "aria-label": "Graph. Arrow keys go from box to box, Enter opens a scope, slash searches, x goes to the graph as text, question mark lists all keys." });
  const stage = make("div", { class: "stage" }, canvas);
  const side = make("nav", { class: "sidebar", "aria-label": "Lists" }), panel = make("aside", { class: "panel", "aria-label": "Details" });
  const stepping = make("aside", { class: "panel stepping", "aria-label": "Step" });
  const bar = make("div", { class: "player", role: "group", "aria-label": "Player" });
  const legend = make("div", { class: "legend", "aria-label": "Legend" });
  const header = make("header");
  if (!model.nodes.length) stage.append(make("p", { class: "nothing" }, "This graph is empty: it has no inputs, no outputs and no operations."));
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
    const has = mode === "change" ? Boolean(doc.compared) : mode === "difference" ? Boolean(doc.differences) : mode === "digits lost" ? Boolean(doc.rounding) : mode === "kernel" || mode === "time" ? Boolean(doc.kernels) : mode.endsWith("norm") ? Boolean(doc.values) : true;
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
  app.onScheme.push(() => details.show());
  drawLegend();

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
  const flip = () => { theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); app.restyle(); };
  const foldUp = () => { void app.setBeside(!app.beside); fold.setAttribute("aria-pressed", String(!app.beside)); };
  const fold = button("Fold backward", "Show the backward pass folded under the forward nodes, or beside them (f)", foldUp, { "aria-pressed": "false" });
  fold.hidden = Boolean(model.lanes) || !model.nodes.some((r) => model.second[r.id]);
  const lanes = button("Lanes", "Forward, backward and update of a training step side by side, or all in one", () => { root.replaceChildren(); explore(doc, root, !inLanes); }, { "aria-pressed": String(inLanes) });
  lanes.hidden = !doc.updates;
  const lists = button("Lists", "The graph as text, and other lists (x)", () => list(!document.body.classList.contains("listing")), { class: "narrow" });
  const list = (open: boolean) => {
    document.body.classList.toggle("listing", open); // where there is no room for it beside the picture
    lists.setAttribute("aria-expanded", String(open));
    if (open) { sidebar.open("outline"); sidebar.twin.focus(); }
  };
  side.addEventListener("keydown", (e) => { if (e.key === "Escape" && document.body.classList.contains("listing")) { list(false); lists.focus(); } });
  const keys: Keys = new Keys(actions({
    app, player, next, theme: flip, fold: foldUp, backward: !fold.hidden,
    search: () => { search.focus(); search.select(); }, colours: () => modes.focus(), lists: () => list(true),
    take: () => { menu.open = true; (menu.querySelector("button") as HTMLElement).focus(); }, help: () => help(),
  }), canvas, bar);
  const help = () => dialog("Keys", make("div", { class: "columns" }, ...keys.help()));
  const skip = make("a", { href: "#graph-as-text", class: "skip" }, "To the graph as text");
  skip.addEventListener("click", (e) => { e.preventDefault(); list(true); });
  header.append(
    skip, make("h1", { title: doc.name || "graph" }, doc.name || "graph"),
    make("p", { class: "stats" }, `${count(model.nodes.length, "node")}, ${count(model.nodes.reduce((n, r) => n + r.inputs.length, 0), "edge")}`),
    search, make("div", { class: "tools", role: "group", "aria-label": "Tools" },
      lists, lanes, fold, stepper, modes, button("−", "Zoom out (-)", () => app.view.zoom(0.8)), button("+", "Zoom in (+)", () => app.view.zoom(1.25)),
      button("Fit", "Fit the picture into the window (0)", () => app.view.fit()), menu, button("◐", "Light or dark (t)", flip), button("?", "Keys (?)", help)));
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    window.matchMedia?.(query).addEventListener("change", () => { theme(prefersDark() ? "dark" : "light"); app.restyle(); });
  }

  void app.start().then(async () => {
    const linked = /^#node=(\d+)$/.exec(location.hash), id = linked ? Number(linked[1]) : (doc.focus ?? undefined);
    if (id !== undefined && id < model.nodes.length) await app.focus(id);
    details.show();
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  });
  window.addEventListener("hashchange", () => {
    const linked = /^#node=(\d+)$/.exec(location.hash);
    if (linked && canvas.isConnected && Number(linked[1]) !== app.selected && Number(linked[1]) < model.nodes.length) void app.focus(Number(linked[1]));
  });
  (window as unknown as { explorer: unknown }).explorer = { app, player, keys }; // for tests and the curious
}

function makeMenu(title: string, items: [string, () => void][]): HTMLDetailsElement {
  const box = make("details", { class: "menu" }, make("summary", { role: "button" }, title));
  const list = make("div", { class: "items", role: "menu" });
  for (const [text, act] of items) list.append(make("button", { type: "button", role: "menuitem", click: () => { box.open = false; act(); } }, text));
  box.append(list);
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { box.open = false; (box.firstElementChild as HTMLElement).focus(); }
    const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0, all = [...list.children] as HTMLElement[];
    if (!by || !box.open) return;
    e.preventDefault();
    const at = all.indexOf(document.activeElement as HTMLElement);
    all[at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length].focus();
  });
  document.addEventListener("pointerdown", (e) => { if (!box.contains(e.target as Node)) box.open = false; });
  return box;
}

function dialog(title: string, ...content: Node[]): void {
  const box = make("dialog", { "aria-label": title }, make("h2", { tabindex: "-1", autofocus: "" }, title), ...content, make("form", { method: "dialog" }, make("button", {}, "Close")));
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
