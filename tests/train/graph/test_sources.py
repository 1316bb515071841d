"""Graphs and labels from files, by their endings."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrograd.errors import FormatError, OptionError
from retrograd.train.graph import GraphConfig, karate, read_task, train
from tests.train.graph.documents import write


def test_tables_and_graphml(tmp_path: Path) -> None:
    import networkx

    write(
        tmp_path,
        edges_csv="source,target,weight\na,b,1\nb,c,2\n# nothing\nc,d,1\n",
        nodes_csv="node,label,size\na,x,1\nb,x,2\nc,y,3\nd,,4\n",
    )
    task = read_task(str(tmp_path / "edges.csv"), None, tmp_path / "nodes.csv")
    assert task.graphs[0].edge_weight.tolist() == [1, 1, 2, 2, 1, 1]
    assert task.labels.tolist() == [0, 0, 1, -1]
    assert list(task.graphs[0].node_features) == ["size"]
    graph = networkx.karate_club_graph()
    networkx.write_graphml(graph, tmp_path / "club.graphml")
    again = read_task(str(tmp_path / "club.graphml"), "club", None)
    assert again.labels.tolist() == karate().labels.tolist()
    assert again.graphs[0].edges.tolist() == karate().graphs[0].edges.tolist()
    with pytest.raises(FormatError, match="no node has an attribute 'side'; they have club"):
        read_task(str(tmp_path / "club.graphml"), "side", None)


@pytest.mark.slow
def test_a_directory_of_graphs(tmp_path: Path) -> None:
    write(tmp_path, a_edges="0 1\n1 2\n", b_edges="0 1\n1 2\n2 0\n",
          labels_csv="file,label\na.edges,path\nb.edges,ring\n")  # fmt: skip
    task = read_task(str(tmp_path), None, None)
    assert [g.num_edges for g in task.graphs] == [4, 6]
    assert task.classes == ["path", "ring"]
    outcome = train(task, GraphConfig(per_class=1, hidden=4, steps=20))
    assert outcome.accuracy(outcome.train) == 1


def test_edge_lists_of_networkx_and_edges_listed_both_ways(tmp_path: Path) -> None:
    import networkx

    graph = networkx.karate_club_graph()
    nodes = "".join([f"{v},{graph.nodes[v]['club']}\n" for v in graph])
    write(tmp_path, nodes_csv="node,label\n" + nodes)
    networkx.write_edgelist(graph, tmp_path / "a.edgelist")
    networkx.write_weighted_edgelist(graph, tmp_path / "b.edgelist")
    lines = (tmp_path / "b.edgelist").read_text(encoding="utf-8").splitlines()
    back = ["{1} {0} {2}".format(*line.split()) for line in lines]
    write(tmp_path, c_edgelist="\n".join([*lines, *back]))
    for name in "abc":
        task = read_task(str(tmp_path / f"{name}.edgelist"), None, tmp_path / "nodes.csv")
        assert task.graphs[0].edges.tolist() == karate().graphs[0].edges.tolist()
        weight = task.graphs[0].edge_weight
        assert weight is not None
        assert weight.tolist() == karate().graphs[0].edge_weight.tolist()
    write(tmp_path, d_edgelist="0 1 {'weight': }\n")
    with pytest.raises(FormatError, match=r"d\.edgelist, line 1: attributes are"):
        read_task(str(tmp_path / "d.edgelist"), None, tmp_path / "nodes.csv")


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--nodes"):
        read_task(str(tmp_path / "edges.csv"), None, None)
    with pytest.raises(FormatError, match="a graph is a file ending in"):
        read_task("graph.xyz", None, None)
    write(tmp_path, bad_graphml="<graphml")
    with pytest.raises(FormatError, match=r"bad\.graphml, line 1: this is not well-formed XML"):
        read_task(str(tmp_path / "bad.graphml"), None, None)
    write(tmp_path, bad_graphml="<a/>")
    with pytest.raises(FormatError, match="not a graph that NetworkX can read"):
        read_task(str(tmp_path / "bad.graphml"), None, None)
    with pytest.raises(OptionError, match="atlas has the labels"):
        read_task("atlas", "planar", None)
    with pytest.raises(OptionError, match=r"has 1[567] members"):
        train(karate(), GraphConfig(per_class=40))
