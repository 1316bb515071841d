"""The Graphviz text: structure, escaping, an edge for each use."""

import re

import pytest

from retrograd.viz import to_dot
from tests.viz import graphs

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_ATTRS = rf"(?: \[\w+=(?:{_STRING}|[\w.]+)(?:, \w+=(?:{_STRING}|[\w.]+))*\])?"
_STATEMENTS = [
    r"digraph \{",
    r"\}",
    r"subgraph cluster_\d+ \{",
    rf"(?:\w+=(?:{_STRING}|\w+); ?)+",
    rf"(?:node|edge){_ATTRS};",
    rf"[ns]\w+{_ATTRS};",
    rf"[ns]\w+ -> [ns]\w+{_ATTRS};",
]


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("name", graphs.ALL)
def test_every_line_is_a_statement_and_braces_balance(name, closed):
    graph = graphs.ALL[name]()
    depth, declared = 0, set()
    text = to_dot(graph, closed=closed)
    for line in text.splitlines():
        line = line.strip()
        assert any(re.fullmatch(s, line) for s in _STATEMENTS), line
        bare = re.sub(_STRING, "", line)
        depth += bare.count("{") - bare.count("}")
        assert depth >= 0
        if found := re.match(r"([ns]\w+) \[", line):
            assert found[1] not in declared
            declared.add(found[1])
    assert depth == 0
    assert closed or {f"n{i}" for i in range(len(graph.nodes))} <= declared
    assert set(re.findall(r"([ns]\w+) ->|-> ([ns]\w+)", re.sub(_STRING, "", text))) <= {
        pair for i in declared for pair in ((i, ""), ("", i))
    }


def test_two_edges_for_two_uses():
    assert to_dot(graphs.parallel()).count("n0 -> n1") == 2


def test_scopes_are_clusters():
    text = to_dot(graphs.network(), closed=False)
    labels = re.findall(r'subgraph cluster_\d+ \{\n\s*label="([^"]*)"', text)
    assert labels == ["model", "layers", "[0]", "[1]", "mean()"]


def test_edges_carry_shapes_and_gradients_their_colour():
    text = to_dot(graphs.network(), closed=False)
    assert 'label="N×8"' in text
    assert text.count("#be185d") > 3


def test_closed_calls_are_one_node_with_their_formula():
    text = to_dot(graphs.network())
    labels = re.findall(r'subgraph cluster_\d+ \{\n\s*label="([^"]*)"', text)
    assert labels == ["model", "layers", "[0]", "[1]"]
    assert re.search(r'\n +s\d+ \[label="mean\\ny = \(1 / n\) Σᵢ xᵢ', text)
    assert "matrix product" in text
    assert "dot_general" in to_dot(graphs.network(), words=False)


@pytest.mark.slow
def test_deep_scopes_and_long_chains():
    text = to_dot(graphs.chain(20_000, scoped=200), closed=False)
    assert text.count("{") == text.count("}") == 202
