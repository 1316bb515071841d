"""GML: what is wrong is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import retrograd as rg
from retrograd.errors import FormatError
from retrograd.train.graph import karate, read_task
from retrograd.train.graph.gml import check_gml
from tests.train.graph.documents import write

GML = """# of three nodes
graph [
  comment "edge [ source 9"
  node [ id 1 value "x"
    graphics [ id 2 ] ]
  node [
    id 2 value "y" ]
  node [ id {} value "y" ]
  edge [ source 1 target 2 ]
  edge [ source {} target {} weight {} ]
]
"""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((2, 1, 1, 1), r"line 8: there is a node with the id 2 already, in line 6"),
        ((3, 1, 4, 1), r"line 10: there is no node 4"),
        ((3, 2, 1, 1), r"line 10: the edge from 1 to 2 was in line 9; .* multigraph 1"),
        ((3, 1, 3, -2), r"line 10: the weight is -2"),
        ((3, 1, 3, "x"), r"line 10: the weight is 'x'"),
        ((3, 1, 3, '"x'), r"line 10: a string that does not end"),
        ((3, 1, 3, "1 ] ]"), r"line 10: '\]' without a '\['"),
        ((3, 1, 3, "1 a ["), r"line 2: '\[' without a '\]'"),
    ],
)
def test_gml_that_is_wrong(tmp_path: Path, values: Any, message: str) -> None:
    write(tmp_path, bad_gml=GML.format(*values))
    with pytest.raises(FormatError, match=message):
        read_task(str(tmp_path / "bad.gml"), "value", None)


def test_gml_with_and_without_labels(tmp_path: Path) -> None:
    import networkx

    write(tmp_path, bare_gml=GML.format(3, 1, 3, 2))
    task = read_task(str(tmp_path / "bare.gml"), "value", None)
    assert (task.nodes, task.labels.tolist()) == (["1", "2", "3"], [0, 1, 1])
    networkx.write_gml(networkx.karate_club_graph(), tmp_path / "club.gml")
    named = read_task(str(tmp_path / "club.gml"), "club", None)
    assert named.labels.tolist() == karate().labels.tolist()
    write(tmp_path, twice_gml='graph [ node [ id 1 label "a" ]\nnode [ id 2 label "a" ] ]')
    with pytest.raises(FormatError, match=r'line 2: .* the label "a" already, in line 1'):
        read_task(str(tmp_path / "twice.gml"), None, None)


def test_gml_may_not_lie_deep(tmp_path):
    content = ("graph [ " + "a [ " * 10_000 + "] " * 10_001).encode()
    with pytest.raises(rg.FormatError, match="more than 100 lists"):
        check_gml(tmp_path / "a.gml", content)
