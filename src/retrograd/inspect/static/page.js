"use strict";
(() => {
  const graph = JSON.parse(document.getElementById("graph").textContent);
  const nodes = graph.nodes;
  const byId = (id) => document.getElementById(id);
  const stage = byId("stage"), panel = byId("panel"), search = byId("search"), results = byId("results");

  // -- the graph ---------------------------------------------------------------------------------
  const users = nodes.map(() => []), gradients = nodes.map(() => []);
  for (const n of nodes) {
    for (const x of n.inputs) users[x].push(n.id);
    if (n.origin !== null) gradients[n.origin].push(n.id);
  }
  const label = (n) => (n.computed ? `%${n.id} ` : "") + (n.name && n.op !== "input" ? `${n.name} = ${n.op}` : n.name || n.op);
  const place = (n) => n.source ? `${n.source.file}:${n.source.line}` : "";
  const text = nodes.map((n) => [label(n), n.op, n.type, n.attrs, n.scope, n.role, place(n),
    n.source ? n.source.text : ""].join("\n").toLowerCase());

  function reach(start, next) {
    const seen = new Set(start), todo = [...start];
    while (todo.length) for (const x of next(todo.pop())) if (!seen.has(x)) { seen.add(x); todo.push(x); }
    return seen;
  }

  // -- the pictures ------------------------------------------------------------------------------
  // Each shows boxes; a box stands for one node, or for the nodes of a group.
  let svg, boxOf, frame, home, layers, drawn, all, current = 0;
  const pictures = [stage.querySelector(".picture")];
  const detail = byId("detail"), known = [];

  function open(index) {
    if (index && !pictures[1]) {
      const made = document.createElement("div");
      made.className = "picture";
      made.dataset.kind = "nodes";
      made.append(detail.content.cloneNode(true));
      stage.append(made);
      pictures[1] = made;
    }
    pictures.forEach((p, i) => { p.hidden = i !== index; p.style.display = i === index ? "" : "none"; });
    current = index;
    svg = pictures[index].querySelector("svg");
    const grouped = pictures[index].dataset.kind === "groups";
    boxOf = new Map();
    layers = known[index] ||= measure(pictures[index]);
    all = layers.flatMap((l) => l.parts);
    drawn = null;
    for (const { e: box } of all) {
      if (!box.classList.contains("box")) continue;
      box.setAttribute("tabindex", "0");
      const members = grouped ? graph.groups[box.id] : [Number(box.id.slice(1))];
      for (const id of members) boxOf.set(id, box);
    }
    if (!home || home.index !== index) {
      const view = svg.getAttribute("data-size") || svg.getAttribute("viewBox");
      svg.setAttribute("data-size", view);
      const [, , w, h] = view.split(" ").map(Number);
      home = { index, w, h };
      svg.removeAttribute("width");
      svg.removeAttribute("height");
      fit();
    }
    byId("view").textContent = grouped ? "All nodes" : "Scopes";
  }

  function show() {
    cull();
    svg.setAttribute("viewBox", `${frame.x} ${frame.y} ${frame.w} ${frame.h}`);
  }

  // Browsers are slow with thousands of elements, even hidden ones or those out of sight: they are
  // taken out of the page while the view is away from them.
  function measure(picture) {
    const main = picture.querySelector(".layer").parentNode.transform.baseVal[0].matrix;
    return [...picture.querySelectorAll(".layer")].map((layer) => ({
      layer,
      parts: [...layer.children].map((e) => {
        const b = e.getBBox(), own = e.transform.baseVal[0]?.matrix || { e: 0, f: 0 };
        const x = b.x + own.e + main.e, y = b.y + own.f + main.f;
        return { e, x, y, right: x + b.width, bottom: y + b.height };
      }),
    }));
  }
  function cull() {
    const f = frame;
    if (drawn && f.x >= drawn.x && f.y >= drawn.y && f.x + f.w <= drawn.right && f.y + f.h <= drawn.bottom && f.w * 4 > drawn.right - drawn.x) return;
    drawn = { x: f.x - f.w / 2, y: f.y - f.h / 2, right: f.x + 1.5 * f.w, bottom: f.y + 1.5 * f.h };
    for (const { layer, parts } of layers) {
      const near = parts.filter((p) => p.x < drawn.right && p.right > drawn.x && p.y < drawn.bottom && p.bottom > drawn.y);
      if (near.length !== layer.children.length || near.some((p) => !p.e.parentNode)) layer.replaceChildren(...near.map((p) => p.e));
    }
  }
  function fit() {
    // A tall picture starts at its top and a wide one at its first node, at a size that can be read.
    const w = stage.clientWidth || 800, h = stage.clientHeight || 600;
    const scale = Math.min(1.3, Math.max(Math.min(w / home.w, h / home.h), Math.min(w / home.w, 0.55), 0.3));
    frame = { w: w / scale, h: h / scale, x: (home.w - w / scale) / 2, y: Math.min(0, (home.h - h / scale) / 2) };
    if (home.h > h / scale) frame.y = 0;
    const first = all.find(({ e }) => e.classList.contains("box"));
    if (home.w > w / scale && first) frame.x = Math.min(Math.max((first.x + first.right - frame.w) / 2, 0), home.w - frame.w);
    show();
  }
  function zoom(factor, cx = 0.5, cy = 0.5) {
    const w = Math.min(Math.max(frame.w * factor, 80), home.w * 20 + 4000), k = w / frame.w;
    frame = { x: frame.x + frame.w * cx * (1 - k), y: frame.y + frame.h * cy * (1 - k), w, h: frame.h * k };
    show();
  }
  function pan(dx, dy) { frame.x += dx * frame.w; frame.y += dy * frame.h; show(); }
  function reveal(box) {
    const at = all.find((p) => p.e === box), width = stage.clientWidth;
    const k = frame.w > width * 1.8 ? width * 1.3 / frame.w : 1;
    frame.w *= k;
    frame.h *= k;
    frame.x = (at.x + at.right - frame.w) / 2;
    frame.y = (at.y + at.bottom - frame.h) / 2;
    show();
  }

  // -- selection ---------------------------------------------------------------------------------
  function clear() {
    for (const { e } of all) e.classList.remove("near", "chosen", "partner");
    svg.classList.remove("selecting");
  }
  function select(ids, move) {
    clear();
    const up = reach(ids, (i) => nodes[i].inputs), down = reach(ids, (i) => users[i]);
    const keys = new Set();
    for (const i of [...up, ...down]) {
      const box = boxOf.get(i);
      if (box && !keys.has(box.id)) { keys.add(box.id); box.classList.add("near"); }
    }
    for (const i of ids) {
      boxOf.get(i)?.classList.add("chosen");
      const origin = nodes[i].origin;
      for (const j of [...gradients[i], ...(origin === null ? [] : [origin])]) {
        const box = boxOf.get(j);
        if (box) box.classList.add("partner", "near");
      }
    }
    const boxes = (set) => new Set([...set].map((i) => boxOf.get(i)?.id));
    const above = boxes(up), below = boxes(down);
    for (const { e: wire } of all) {
      const { from, to } = wire.dataset;
      if (!to) continue;
      if ((above.has(from) && above.has(to)) || (below.has(from) && below.has(to))) wire.classList.add("near");
    }
    svg.classList.add("selecting");
    if (ids.length === 1) describe(nodes[ids[0]], up.size - 1, down.size - 1);
    else describeGroup(ids);
    const box = boxOf.get(ids[0]);
    if (move && box) reveal(box);
    location.replace(ids.length === 1 ? `#${ids[0]}` : "#");
  }

  // -- the panel ---------------------------------------------------------------------------------
  function make(tag, content = "", kind = "") {
    const e = document.createElement(tag);
    e.textContent = content;
    if (kind) e.className = kind;
    return e;
  }
  function link(n) {
    const item = make("li"), button = make("button", label(n), "link");
    button.type = "button";
    button.append(make("span", n.role === "constant" ? `${n.attrs} ${n.type}` : n.type));
    button.addEventListener("click", () => select([n.id], true));
    item.append(button);
    return item;
  }
  function section(title, ids) {
    if (!ids.length) return;
    const list = make("ul");
    for (const i of ids.slice(0, 200)) list.append(link(nodes[i]));
    if (ids.length > 200) list.append(make("li", `and ${ids.length - 200} more`));
    panel.append(make("h3", title), list);
  }
  function fact(title, value) {
    if (!value) return;
    const p = make("p");
    p.append(make("code", value));
    panel.append(make("h3", title), p);
  }
  function describe(n, above, below) {
    panel.replaceChildren(make("h2", label(n)));
    const out = n.outputs.map((k) => graph.output_names[k] || `output ${k}`).join(", ");
    panel.append(make("p", n.role + (out ? ` · ${out}` : "") + (n.computed ? "" : " · not computed: its value is not needed"), "kind"));
    fact("operation", n.attrs ? `${n.op}(${n.attrs})` : n.op);
    fact("type", n.type);
    fact("scope", n.scope);
    if (n.source) {
      fact("source", `${place(n)} in ${n.source.function}`);
      if (n.source.text) panel.append(make("pre", n.source.text));
    }
    section("inputs", n.inputs);
    section("used by", users[n.id]);
    section("gradient nodes", gradients[n.id]);
    if (n.origin !== null) section("belongs to", [n.origin]);
    panel.append(make("h3", "depends on"), make("p", `${above} nodes upstream, ${below} downstream`));
  }
  function describeGroup(ids) {
    const scope = nodes[ids[0]].scope;
    panel.replaceChildren(make("h2", scope || "group"), make("p", `${ids.length} nodes`, "kind"));
    if (detail) {
      const button = make("button", "Show these nodes");
      button.type = "button";
      button.addEventListener("click", () => { open(1); select([ids[0]], true); });
      panel.append(button);
    }
    section("nodes", ids);
  }
  function welcome() {
    panel.replaceChildren(make("h2", "How to read it"));
    const lines = ["Click a node for its facts; everything it depends on and everything that depends on it lights up.",
      "A gradient node stands beside the forward node it belongs to. Small labels at the left of a node name values that come from afar.",
      "Dashed boxes are forward nodes whose value the graph does not need."];
    for (const line of lines) { const p = make("p", line); p.style.marginBottom = "8px"; panel.append(p); }
    for (const [key, what] of [["/", "search"], ["+ −", "zoom"], ["0", "fit"], ["← ↑ ↓ →", "move"], ["Tab", "next node"], ["Esc", "clear"]]) {
      const p = make("p");
      p.append(make("kbd", key), ` ${what}`);
      panel.append(p);
    }
    const ops = make("p", Object.entries(graph.ops).map(([op, n]) => `${n} ${op}`).join(", "));
    panel.append(make("h3", "operations"), ops);
    section("outputs", graph.outputs);
    section("inputs", graph.inputs);
  }

  // -- searching ---------------------------------------------------------------------------------
  function find() {
    for (const { e } of all) e.classList.remove("found");
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.hidden = !words.length;
    if (!words.length) return [];
    const hits = nodes.filter((n) => words.every((w) => text[n.id].includes(w)));
    results.replaceChildren(make("li", hits.length === 1 ? "1 node" : `${hits.length} nodes`, "count"));
    for (const n of hits.slice(0, 100)) results.append(link(n));
    for (const n of hits) boxOf.get(n.id)?.classList.add("found");
    return hits;
  }

  // -- events ------------------------------------------------------------------------------------
  let drag = null;
  stage.addEventListener("pointerdown", (e) => {
    if (e.button === 0) drag = { x: e.clientX, y: e.clientY, moved: false, id: e.pointerId };
  });
  stage.addEventListener("pointermove", (e) => {
    if (!drag) return;
    const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    if (!drag.moved) { drag.moved = true; stage.setPointerCapture(drag.id); stage.classList.add("dragging"); }
    pan(-dx / stage.clientWidth, -dy / stage.clientHeight);
    drag.x = e.clientX; drag.y = e.clientY;
  });
  let moved = false;
  const release = () => { moved = Boolean(drag && drag.moved); drag = null; stage.classList.remove("dragging"); };
  stage.addEventListener("pointerup", release);
  stage.addEventListener("pointercancel", release);
  stage.addEventListener("wheel", (e) => {
    e.preventDefault();
    const at = stage.getBoundingClientRect();
    zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.004), (e.clientX - at.x) / at.width, (e.clientY - at.y) / at.height);
  }, { passive: false });
  const membersOf = (box) => box.id[0] === "s" ? graph.groups[box.id] : [Number(box.id.slice(1))];
  stage.addEventListener("click", (e) => {
    if (moved) { moved = false; return; }
    const stub = e.target.closest(".stub"), box = e.target.closest(".box");
    if (stub) select(membersOf(all.find(({ e }) => e.id === stub.dataset.from).e), true);
    else if (box) select(membersOf(box), false);
    else { clear(); welcome(); }
  });
  stage.addEventListener("dblclick", (e) => {
    const box = e.target.closest(".box");
    if (box && detail && current === 0) { const ids = membersOf(box); open(1); select([ids[0]], true); }
  });
  search.addEventListener("input", find);
  search.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { const hits = find(); if (hits.length) { select([hits[0].id], true); results.hidden = false; } }
    if (e.key === "Escape") { search.value = ""; find(); stage.focus(); }
    e.stopPropagation();
  });
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = 0.08;
    const does = {
      "/": () => search.focus(), "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), "0": fit,
      ArrowLeft: () => pan(-step, 0), ArrowRight: () => pan(step, 0), ArrowUp: () => pan(0, -step), ArrowDown: () => pan(0, step),
      Escape: () => { clear(); welcome(); search.value = ""; find(); },
      Enter: () => { const box = document.activeElement.closest?.(".box"); if (box) select(membersOf(box), false); },
    }[e.key];
    if (!does || (e.key === "Enter" && !document.activeElement.closest?.(".box"))) return;
    e.preventDefault();
    does();
  });
  byId("in").addEventListener("click", () => zoom(0.8));
  byId("out").addEventListener("click", () => zoom(1.25));
  byId("fit").addEventListener("click", fit);
  byId("view").hidden = !detail;
  byId("view").addEventListener("click", () => { clear(); welcome(); open(1 - current); find(); });
  addEventListener("resize", () => { frame.h = frame.w * stage.clientHeight / stage.clientWidth; show(); });

  open(0);
  welcome();
  const wanted = location.hash.slice(1);
  if (/^\d+$/.test(wanted) && nodes[wanted]) select([Number(wanted)], true);
})();
