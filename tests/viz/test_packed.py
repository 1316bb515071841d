"""A document as text: back to the same document, or an error that says what is wrong and where."""

import json
import math

import numpy as np
import pytest

from retrograd.errors import FormatError
from retrograd.viz import VERSION, document, dumps, loads, strict, summary
from tests.viz import graphs


@pytest.mark.parametrize("name", graphs.ALL)
def test_text_and_back(name):
    doc = document(graphs.ALL[name]())
    assert loads(dumps(doc)) == doc
    assert loads(dumps(doc).encode()) == doc


def test_numbers_that_json_lacks_are_words():
    doc = document(graphs.single()) | {"values": {"0": {"data": [math.nan, math.inf, -math.inf]}}}
    assert json.loads(dumps(doc))["values"]["0"]["data"] == ["nan", "inf", "-inf"]
    assert strict({"a": (1.5, math.nan)}) == {"a": [1.5, "nan"]}


def test_what_is_no_document_is_said():
    for text in ("", "graph {", "[1, 2]", '{"format": "other"}', "[" * 100_000):
        with pytest.raises(FormatError, match=r"not a graph document|is damaged"):
            loads(text)


def test_another_version_is_said():
    for version, word in ((VERSION + 1, "newer.*update retrograd"), (VERSION - 1, "older")):
        text = dumps(document(graphs.single()) | {"version": version})
        with pytest.raises(FormatError, match=word):
            loads(text)


def test_heat_maps_are_kept():
    told = summary(np.ones((2, 3)), 6)
    doc = document(graphs.single()) | {"values": {"0": told}}
    assert loads(dumps(doc))["values"]["0"] == told


MAP = {"shape": [2], "cells": [1, 1, 2], "block": [1, 1], "scale": 1.0, "f16": "ADwAPA=="}
DAMAGE = [
    (lambda d: d.pop("nodes"), "nodes"),
    (lambda d: d.update(inputs=[99]), "inputs"),
    (lambda d: d.update(outputs=[True]), "outputs"),
    (lambda d: d.update(output_names=[1, 2, 3]), "output_names"),
    (lambda d: d["nodes"].__setitem__(3, 7), "node 3"),
    (lambda d: d["nodes"][3].update(inputs=[99]), "node 3, inputs"),
    (lambda d: d["nodes"][3].update(inputs=[4]), "cycle"),
    (lambda d: d["nodes"][3].update(op=5), "node 3, op"),
    (lambda d: d["nodes"][3].pop("type"), "node 3, type"),
    (lambda d: d["nodes"][3].update(origin=3), "its own origin"),
    (lambda d: d["nodes"][3].update(role="god"), "role"),
    (lambda d: d["nodes"][3].update(source=55), "source"),
    (lambda d: d["nodes"][3].update(rule=-1), "rule"),
    (lambda d: d.update(sources=[{"file": 1}]), r"sources\[0\]"),
    (lambda d: d.update(rules=[{}]), r"rules\[0\]"),
    (lambda d: d.update(steps=[{"node": 99}]), r"steps\[0\]"),
    (lambda d: d.update(values={"x": {}}), "values"),
    (lambda d: d.update(kernels=[{"nodes": [99]}]), r"kernels\[0\]"),
    (lambda d: d.update(focus="first"), "focus"),
    (lambda d: d.update(values={"0": {"data": ["<b>"]}}), "values, 0"),
    (lambda d: d.update(values={"0": {"hist": "high"}}), "values, 0"),
    (lambda d: d.update(values={"0": {"norm": None}}), "values, 0"),
    (lambda d: d.update(values={"0": {"map": [1]}}), "values, 0"),
    (lambda d: d.update(values={"0": {"map": MAP | {"cells": [1, 2, 3]}}}), "values, 0"),
    (lambda d: d.update(values={"0": {"map": MAP | {"scale": "large"}}}), "values, 0"),
    (lambda d: d.update(kernels=[{"nodes": [], "text": 1, "ops": ""}]), r"kernels\[0\]"),
    (lambda d: d.update(arena={"times": ["x"]}), "arena"),
    (lambda d: d.update(problem={"node": 0}), "problem"),
    (lambda d: d.update(compared=["a"]), "compared"),
]


@pytest.mark.parametrize(("harm", "where"), DAMAGE, ids=range(len(DAMAGE)))
def test_damage_is_reported_where_it_is(harm, where):
    doc = json.loads(dumps(document(graphs.worked_example())))
    harm(doc)
    with pytest.raises(FormatError, match=where):
        loads(json.dumps(doc))


def test_a_cut_file_is_reported():
    text = dumps(document(graphs.network()))
    for length in range(1, len(text), len(text) // 23):
        with pytest.raises(FormatError):
            loads(text[:length])
