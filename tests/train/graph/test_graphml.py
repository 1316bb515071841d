"""GraphML: what is wrong is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from retrograd.errors import FormatError
from retrograd.train.graph import read_task
from tests.train.graph.documents import write

GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">
<edge source="a" target="b"/>
<node id="a"/>
<node id="{}"/>
<edge source="{}" target="a"/>
</graph></graphml>
"""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "a"), r"line 5: node 'a' is listed twice, first in line 4"),
        (("b", "q"), r"line 6: there is no node 'q'"),
        (("c", "a"), r"line 3: there is no node 'b'"),
        (("b", "b"), "no node has an attribute 'label'"),
    ],
)
def test_graphml_that_is_wrong(tmp_path: Path, names: tuple[str, str], message: str) -> None:
    write(tmp_path, bad_graphml=GRAPHML.format(*names))
    with pytest.raises(FormatError, match=message):
        read_task(str(tmp_path / "bad.graphml"), None, None)


KEYED = """<graphml><key id="k" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/>
<edge id="e" source="a" target="b"><data key="k">1.5</data></edge>
<edge id="{}" source="a" target="c"><data key="k">{}</data></edge>
</graph></graphml>
"""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("e", 1), r"line 4: edge 'e' is listed twice, first in line 3"),
        (("f", -1), r"line 4: the weight is -1"),
        (("f", "NaN"), r"line 4: the weight is nan"),
    ],
)
def test_edges_of_graphml_that_are_wrong(tmp_path: Path, values: Any, message: str) -> None:
    write(tmp_path, bad_graphml=KEYED.format(*values))
    with pytest.raises(FormatError, match=message):
        read_task(str(tmp_path / "bad.graphml"), None, None)


KEYED_NODES = """<graphml><key id="l" for="node" attr.name="label" attr.type="string"/>
<key id="x" for="node" attr.name="x" attr.type="double"/>
<key id="w" for="edge" attr.name="weight" attr.type="{}"/>
<graph edgedefault="undirected">
<node id="a"><data key="l">p</data><data key="x">{}</data></node>
<node id="b"><data key="l">q</data><data key="x">1</data></node>
<edge source="a" target="b"><data key="w">{}</data></edge></graph></graphml>
"""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("double", "nan", "1"), "'x' of the node 'a' is nan"),
        (("double", "1e39", "1"), "'x' of the node 'a' is 1e.39"),
        (("double", "1", "1e39"), "line 7: the weight is 1e.39"),
        (("string", "1", "1"), "the weight between 'a' and 'b' is '1', not a number"),
        (("boolean", "1", "1"), "the weight between 'a' and 'b' is True, not a number"),
    ],
)
def test_numbers_of_graphml_that_cannot_be_computed_with(tmp_path, values, message):
    path = tmp_path / "a.graphml"
    path.write_text(KEYED_NODES.format("double", "1", "1"))
    assert read_task(str(path), None, None).graphs[0].edge_weight is not None
    path.write_text(KEYED_NODES.format(*values))
    with pytest.raises(FormatError, match=message):
        read_task(str(path), None, None)


@pytest.mark.parametrize("encoding", ["big5", "no-such-one", "hex", "idna"])
def test_graphml_in_an_encoding_that_cannot_be_read(tmp_path, encoding):
    path = tmp_path / "a.graphml"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>' + KEYED)
    with pytest.raises(FormatError, match="XML in this encoding"):
        read_task(str(path), None, None)
