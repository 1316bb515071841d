"""Documents as JSON text and back: `dumps`, `loads`.

The text is the document but for what follows from the rest of it: keys of nodes that have their
usual value are left out, and so are `edges` and `scopes`. Numbers that JSON lacks are the strings
"nan", "inf" and "-inf". `loads` checks all that readers rely on, so that damage is reported where
it is and not as a defect of the reader.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from retrograd.errors import FormatError
from retrograd.viz.graph_document import VERSION, Document, Record, completed
from retrograd.viz.roles import ROLES

USUAL: Record = {
    "family": "other", "name": "", "variable": "", "attrs": "", "shape": "", "scope": "",
    "source": None, "origin": None, "inputs": [], "role": "forward", "order": 0, "outputs": [],
    "computed": True,
    "rule": None, "body": None, "gradient": None,
}  # fmt: skip
_NEVER = object()  # what no value equals
WORDS = ("nan", "inf", "-inf")  # for numbers that JSON lacks
CHANGES = ("same", "added", "changed", "moved", "removed")
_KEY = re.compile(r"[0-9]{1,18}")


def dumps(doc: Document) -> str:
    """The text of a document, on one line."""
    nodes = [
        {k: v for k, v in r.items() if k != "id" and v != USUAL.get(k, _NEVER)}
        for r in doc["nodes"]
    ]
    kept = {k: v for k, v in doc.items() if k not in ("edges", "scopes")} | {"nodes": nodes}
    try:
        return json.dumps(kept, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(strict(kept), separators=(",", ":"), allow_nan=False)


def strict(value: Any) -> Any:
    """The same structure with strings for the numbers that JSON lacks."""
    if isinstance(value, dict):
        return {k: strict(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [strict(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def loads(text: str | bytes) -> Document:
    """The document that a text holds; `FormatError` says what is wrong with it, and where."""
    try:
        doc = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"this is not a graph document: {error or 'nested too deep'}") from None
    _expect(isinstance(doc, dict) and doc.get("format") == "retrograd-graph", "",
            'an object with "format": "retrograd-graph"')  # fmt: skip
    version = doc.get("version")
    _expect(isinstance(version, int) and version > 0, "version", "a whole number")
    if version != VERSION:
        age = "newer" if version > VERSION else "older"
        remedy = "update retrograd" if version > VERSION else "write it again"
        raise FormatError(
            f"this document has the version {version}, {age} than {VERSION}, which this retrograd "
            f"reads; {remedy}"
        )
    _check_tables(doc)
    doc["nodes"] = _nodes(doc)
    _check_extras(doc)
    return completed(doc)


def _expect(holds: bool, where: str, what: str) -> None:
    if not holds:
        place = f" at {where}" if where else ""
        raise FormatError(f"the graph document is damaged{place}: expected {what}")


def _check_tables(doc: Document) -> None:
    _expect(isinstance(doc.get("nodes"), list), "nodes", "a list")
    count = len(doc["nodes"])
    _expect(isinstance(doc.setdefault("name", ""), str), "name", "a text")
    for key in ("inputs", "outputs"):
        _expect(_ids(doc.get(key), count), key, "a list of ids of nodes")
    names = doc.setdefault("output_names", [""] * len(doc["outputs"]))
    named = isinstance(names, list) and all(isinstance(n, str) for n in names)
    _expect(named and len(names) == len(doc["outputs"]), "output_names", "a text for each output")
    for i, at in enumerate(_listed(doc, "sources")):
        told = isinstance(at, dict) and isinstance(at.get("line"), int)
        texts = told and all(isinstance(at.get(k), str) for k in ("file", "function", "text"))
        _expect(texts, f"sources[{i}]", "file, line, function and text")
    for i, rule in enumerate(_listed(doc, "rules")):
        told = isinstance(rule, dict) and isinstance(rule.get("forward"), str)
        back = rule.get("back") if told else None
        fits = isinstance(back, list) and all(t is None or isinstance(t, str) for t in back)
        _expect(fits, f"rules[{i}]", "a forward template and a list of templates back")
    for i, call in enumerate(_listed(doc, "calls")):
        told = isinstance(call, dict) and all(
            isinstance(call.get(k), str) for k in ("scope", "name", "of", "formula")
        )
        at = call.get("source") if told else None
        fits = told and (at is None or _id(at, len(doc["sources"])))
        _expect(fits, f"calls[{i}]", "scope, name, of, formula and source")
    _expect(isinstance(doc.setdefault("ops", {}), dict), "ops", "an object")
    words = doc.setdefault("words", {})
    fits = isinstance(words, dict) and all(isinstance(w, str) for w in words.values())
    _expect(fits, "words", "an object of texts")


def _listed(doc: Document, key: str) -> list[Any]:
    _expect(isinstance(doc.setdefault(key, []), list), key, "a list")
    return doc[key]


def _ids(value: Any, count: int) -> bool:
    return isinstance(value, list) and all(_id(x, count) for x in value)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) for x in value)


def _id(value: Any, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def _nodes(doc: Document) -> list[Record]:
    """The nodes, with the usual values filled in, each checked."""
    count, found, roles = len(doc["nodes"]), [], [role.name for role in ROLES]
    kinds: dict[str, tuple[str, Callable[[Any], bool]]] = {
        "inputs": ("a list of ids of nodes", lambda v: _ids(v, count)),
        "origin": ("the id of a node, or null", lambda v: v is None or _id(v, count)),
        "body": ("the id of a node, or null", lambda v: v is None or _id(v, count)),
        "gradient": ("the id of a node, or null", lambda v: v is None or _id(v, count)),
        "outputs": ("a list of outputs", lambda v: _ids(v, len(doc["outputs"]))),
        "source": ("a source", lambda v: v is None or _id(v, len(doc["sources"]))),
        "rule": ("a rule", lambda v: v is None or _id(v, len(doc["rules"]))),
        "role": (f"one of {', '.join(roles)}", lambda v: v in roles),
        "order": ("a whole number", lambda v: _id(v, 1 << 31)),
        "computed": ("true or false", lambda v: isinstance(v, bool)),
        "differs": ("a list of texts", lambda v: _texts(v)),
        "was": ("a text", lambda v: isinstance(v, str)),
        "change": (f"one of {', '.join(CHANGES)}", lambda v: v in CHANGES),
    }  # fmt: skip
    texts = ("op", "family", "name", "variable", "attrs", "type", "shape", "scope")
    for i, given in enumerate(doc["nodes"]):
        _expect(isinstance(given, dict), f"node {i}", "an object")
        r = {"id": i} | USUAL | given
        _expect(type(r["id"]) is int and r["id"] == i, f"node {i}, id", "its place in the list")
        for key in texts:
            _expect(isinstance(r.get(key), str), f"node {i}, {key}", "a text")
        for key, (what, fits) in kinds.items():
            _expect(key not in r or fits(r[key]), f"node {i}, {key}", what)
        found.append(r)
    _check_acyclic(found)
    return found


def in_order(nodes: Sequence[Record]) -> tuple[list[int], list[int]]:
    """The ids, each after those of its inputs, but for nodes on cycles; and for each node how many
    inputs did not come."""
    waiting = [len(r["inputs"]) for r in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for r in nodes:
        for x in r["inputs"]:
            users[x].append(r["id"])
    ready = [i for i, n in enumerate(waiting) if n == 0]
    for i in ready:  # `ready` grows while the loop goes through it
        for u in users[i]:
            waiting[u] -= 1
            if waiting[u] == 0:
                ready.append(u)
    return ready, waiting


def _check_acyclic(nodes: Sequence[Record]) -> None:
    """Readers go through nodes in order of their inputs; an origin is made before what it is of."""
    ready, waiting = in_order(nodes)
    if len(ready) < len(nodes):
        stuck = next(i for i, n in enumerate(waiting) if n)
        _expect(False, f"node {stuck}, inputs", "nodes that do not depend on it: this is a cycle")
    settled: set[int] = set()  # nodes whose chains of origins end
    for r in nodes:
        chain: set[int] = set()
        at = r["id"]
        while at is not None and at not in settled:
            fits = at not in chain
            _expect(fits, f"node {r['id']}, origin", "a node that is not its own origin")
            chain.add(at)
            at = nodes[at]["origin"]
        settled |= chain


def _check_extras(doc: Document) -> None:
    """What only documents of runs hold."""
    count = len(doc["nodes"])
    values = doc.get("values")
    if values is not None:
        _expect(isinstance(values, dict), "values", "an object of summaries by id")
        for key, told in values.items():
            _expect(bool(_KEY.fullmatch(key)) and int(key) < count, "values", "ids of nodes")
            _expect(_is_summary(told), f"values, {key}", "a summary")
    steps = doc.get("steps")
    if steps is not None:
        _expect(isinstance(steps, list), "steps", "a list")
        for i, s in enumerate(steps):
            told = isinstance(s, dict) and _id(s.get("node"), count)
            start = s.get("upstream") if told else None
            told = told and (start is None or _id(start, count))
            told = told and isinstance(s.get("parts"), list)
            parts = told and all(
                isinstance(p, list) and len(p) == 4 and all(_id(x, count) for x in p[1:])
                for p in s["parts"]
            )
            _expect(parts, f"steps[{i}]", "node, upstream and parts")
    focus = doc.get("focus")
    _expect(focus is None or _id(focus, count), "focus", "the id of a node")
    kernels = doc.get("kernels")
    if kernels is not None:
        for i, k in enumerate(_listed(doc, "kernels")):
            fits = isinstance(k, dict) and _ids(k.get("nodes"), count)
            fits = fits and isinstance(k.get("text"), str) and isinstance(k.get("ops"), str)
            costs = ("bytes", "operations", "least_ns", "ns")
            fits = fits and all(k.get(c) is None or _is_number(k.get(c)) for c in costs)
            _expect(fits, f"kernels[{i}]", "nodes, text, ops and numbers")
    arena = doc.get("arena")
    if arena is not None:
        times = arena.get("times") if isinstance(arena, dict) else None
        fits = isinstance(times, list) and all(_is_number(t) for t in (*times, arena.get("peak")))
        _expect(fits, "arena", "times and peak in bytes")
    problem = doc.get("problem")
    if problem is not None:
        fits = isinstance(problem, dict) and _id(problem.get("node"), count)
        texts = ("title", "text", "remedy")
        fits = fits and all(isinstance(problem.get(t), str) for t in texts)
        _expect(fits, "problem", "node, title, text and remedy")
    _check_updates(doc.get("updates"), count)
    _check_differences(doc.get("differences"), count)
    _check_run(doc.get("run"), count)
    _check_rounding(doc.get("rounding"), count)
    compared = doc.get("compared")
    fits = compared is None or (isinstance(compared, list) and len(compared) == 2)
    _expect(fits and all(isinstance(n, str) for n in compared or ()), "compared", "two names")


def _check_updates(step: Any, count: int) -> None:
    if step is None:
        return
    fits = isinstance(step, dict) and _ids(step.get("nodes"), count)
    fits = fits and isinstance(step.get("rules"), list)
    _expect(fits, "updates", "nodes and rules")
    for i, rule in enumerate(step["rules"]):
        fits = isinstance(rule, dict) and isinstance(rule.get("name"), str)
        members = rule.get("members") if fits else None
        fits = isinstance(members, list) and all(
            isinstance(m, dict)
            and _id(m.get("parameter"), count)
            and _id(m.get("gradient"), count)
            and _ids(m.get("nodes"), count)
            for m in members
        )
        _expect(fits, f"updates, rule {i}", "a name and members: parameter, gradient and nodes")


def _check_differences(found: Any, count: int) -> None:
    fits = found is None or (
        isinstance(found, list)
        and all(
            isinstance(d, dict)
            and _id(d.get("node"), count)
            and all(_is_number(d.get(k)) or d.get(k) in WORDS for k in ("relative", "largest"))
            for d in found
        )
    )
    _expect(fits, "differences", "node, relative and largest")


def _check_rounding(found: Any, count: int) -> None:
    if found is None:
        return
    _expect(isinstance(found, dict), "rounding", "an object by id")
    for key, e in found.items():
        fits = bool(_KEY.fullmatch(key)) and int(key) < count and isinstance(e, dict)
        numbers = ("lost", "digits", "share", "condition")
        fits = fits and all(_is_number(e.get(k)) or e.get(k) in WORDS for k in numbers)
        fits = fits and isinstance(e.get("kind"), str) and _id(e.get("count"), 1 << 53)
        fits = fits and ("spread" not in e or _is_summary(e["spread"]))
        _expect(fits, f"rounding, {key}", "lost, digits, share, condition, kind and count")


def _check_run(run: Any, count: int) -> None:
    if run is None:
        return
    told = run if isinstance(run, dict) else {}
    steps, parameters = _listed(told, "steps"), told.get("parameters")
    fits = isinstance(parameters, dict) and all(_id(x, 1 << 62) for x in steps)
    _expect(fits, "run", "steps and parameters")
    for key, kinds in told["parameters"].items():
        fits = bool(_KEY.fullmatch(key)) and int(key) < count and isinstance(kinds, dict)
        fits = fits and all(
            isinstance(v, list)
            and len(v) == len(steps)
            and all(x is None or _is_number(x) or x in WORDS for x in v)
            for v in kinds.values()
        )
        _expect(fits, f"run, {key}", "lists of numbers, one for each step")


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def _is_map(told: Any) -> bool:
    """Whether this is a heat map whose numbers are all there; there may be none."""
    if told is None:
        return True
    if not isinstance(told, dict) or not isinstance(told.get("f16"), str):
        return False
    lists = [told.get(k) for k in ("shape", "cells", "block")]
    if not all(isinstance(x, list) and all(_id(n, 1 << 53) for n in x) for x in lists):
        return False
    cells, block = told["cells"], told["block"]
    letters = -(-2 * math.prod(cells) // 3) * 4  # of base64
    fits = len(cells) == 3 and len(block) == 2 and len(told["f16"]) == letters
    return fits and _is_number(told.get("scale"))


def _is_summary(told: Any) -> bool:
    if not isinstance(told, dict):
        return False
    data, hist, bad = (told.get(k, []) for k in ("data", "hist", "bad"))
    if not all(isinstance(x, list) for x in (data, hist, bad)):
        return False
    elements = all(isinstance(x, int | float) or x in WORDS for x in data)
    rest = [v for k, v in told.items() if k not in ("data", "hist", "bad", "map")]
    return (
        _is_map(told.get("map")) and elements and all(_is_number(x) for x in (*hist, *bad, *rest))
    )
