"""Tables of nodes and edges: what is wrong is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.train.graph import read_task
from retrograd.train.graph.tables import edges_of
from tests.train.graph.documents import write


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ("a,b\n", "node,label\na,x\na,y\n", r"nodes.csv, line 3: node 'a' is listed twice"),
        ("a,b\na,q\n", "node,label\na,x\nb,y\n", r"edges.csv, line 2: there is no node 'q'"),
        ("a,b,-1\n", "node,label\na,x\nb,y\n", r"edges.csv, line 1: the weight is -1"),
        ("a,b,nan\n", "node,label\na,x\nb,y\n", r"edges.csv, line 1: the weight is nan"),
        ("a,b,c,d\n", "node,label\na,x\nb,y\n", r"edges.csv, line 1: an edge is two nodes"),
        ("a,b\n", "node,label,n\na,x,1\nb,y,?\n", r"nodes.csv, line 3: 'n' is '\?'"),
        ("a,b\n", "name,label\na,x\n", r"nodes.csv has no column 'node'; it has name, label"),
        ("a,b\n", "node,label\na\n", r"nodes.csv, line 2: another number of cells"),
        ("a,b\n", "node,label,n\na,x,nan\n", r"nodes.csv, line 2: 'n' is 'nan'"),
        ("a,b\n", "node,label,label\na,x,y\n", r"nodes.csv, line 1: two columns 'label'"),
        (
            "a,b\n\na,b\n",
            "node,label\na,x\nb,y\n",
            r"edges.csv, line 3: .*'a' and 'b' was in line 1",
        ),
        ("a,b,1\nb,a,2\n", "node,label\na,x\nb,y\n", r"edges.csv, line 2: .* with the weight 1.0"),
        ("a,a\na,a\n", "node,label\na,x\nb,y\n", r"edges.csv, line 2: .*'a' and 'a' was in line 1"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, edges: str, nodes: str, message: str) -> None:
    write(tmp_path, edges_csv=edges, nodes_csv=nodes)
    with pytest.raises(FormatError, match=message):
        read_task(str(tmp_path / "edges.csv"), None, tmp_path / "nodes.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.edges", "{'weight': 1}\n"),
        ("a.edges", "a b 3\na c {1}\n"),
        ("a.edges", "a b {" + "[" * 5000 + "\n"),
        ("a.edges", "a b {[]: 1}\n"),
        ("a.csv", "a," + "x" * 200_000 + "\n"),
    ],
)
def test_lists_of_edges_of_another_structure_are_errors_of_ours(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(rg.FormatError, match="line"):
        edges_of(path)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("a b {'weight': 0x" + "f" * 5000 + "}\n", "line 1: attributes are"),
        ("a b 1e39\n", "line 1: the weight is 1e.39"),
    ],
)
def test_weights_of_edge_lists_that_are_too_large(tmp_path, edges, message):
    (tmp_path / "a.edges").write_text(edges)
    with pytest.raises(FormatError, match=message):
        edges_of(tmp_path / "a.edges")
