"""The box of one node, and what boxes say of nodes."""

from __future__ import annotations

import re

from retrograd.viz.graph_document import Document, Record, place_of
from retrograd.viz.pictures.box import DrawnBox, cut
from retrograd.viz.pictures.names import NodeNames


def node_box(r: Record, doc: Document, names: NodeNames) -> DrawnBox:
    """The box of a node, without its edges."""
    attrs = re.sub(r"\(([^(),]+),\)", r"\1", r["attrs"])  # one axis needs no brackets
    title = names.title(r)
    return DrawnBox(
        key=f"n{r['id']}",
        title=cut(title, 34),
        lines=[cut(text, 36) for text in (r["type"], attrs) if text and text != title],
        family=r["role"] if r["family"] == "leaf" and r["op"] == "input" else r["family"],
        role=r["role"],
        members=[r["id"]],
        column=r["order"],
        short=names.short(r),
        scope=r["scope"],
        tooltip=_tooltip(r, doc),
        results=[result(k, r, doc) for k in r["outputs"]],
        computed=r["computed"],
        number=names.number(r),
    )


def slopes_of(doc: Document) -> dict[int, list[str]]:
    """How the gradients are called that are given to the rules of several parameters."""
    found: dict[int, list[str]] = {}
    for rule in doc.get("updates", {"rules": []})["rules"]:
        for m in rule["members"]:
            name = doc["nodes"][m["parameter"]]["name"]
            if len(rule["members"]) > 1 and name:
                found.setdefault(m["gradient"], []).append(cut(f"∂{name}", 30))
    return found


def result(k: int, r: Record, doc: Document) -> str:
    """How output number `k` is called, where the node's own name does not say it."""
    name = doc["output_names"][k]
    if name and name != r["name"]:
        return cut(name, 30)
    return "output" if len(doc["outputs"]) == 1 else f"output {k}"


def _tooltip(r: Record, doc: Document) -> str:
    call = f"{r['op']}({r['attrs']})" if r["attrs"] else r["op"]
    lines = [f"%{r['id']} {r['name']}".rstrip() if r["computed"] else r["name"]]
    lines += [call, r["type"]]
    if r["scope"]:
        lines.append(f"in {r['scope']}")
    if not r["computed"]:
        lines.append("its value is not needed, so this graph does not compute it")
    at = place_of(r, doc)
    return "\n".join([*filter(None, lines), *([place(at, text=True)] if at else [])])


def place(at: Record, text: bool = False) -> str:
    """A source line, by the last part of the file's path: pictures are shown to others."""
    file = at["file"].replace("\\", "/").rpartition("/")[2]
    return f"{file}:{at['line']}  {at['text'] if text else ''}".rstrip()
