"""The page of a failure."""

import math

import pytest

import retrograd as rg
from retrograd.api.nan_report import failure_document
from retrograd.errors import NonFiniteError, OptionError
from retrograd.viz import dumps, loads


def failing():
    x = rg.tensor([4.0, 0.0], requires_grad=True)
    with rg.debug():
        rg.sum(rg.sqrt(x)).backward()


def test_the_page_of_a_failure_opens_at_the_node(tmp_path):
    with pytest.raises(NonFiniteError) as caught:
        failing()
    doc = failure_document(caught.value)
    assert loads(dumps(doc))["focus"] == doc["focus"]
    at = doc["nodes"][doc["focus"]]
    assert at["op"] == caught.value.node.op
    assert at["role"] == "gradient"
    assert doc["problem"]["title"] == str(caught.value).split("\n")[0]
    assert doc["problem"]["remedy"].startswith("remedy:")
    assert not all(math.isfinite(float(x)) for x in doc["values"][str(at["id"])]["data"])
    with pytest.raises(OptionError, match="no node"):
        failure_document(NonFiniteError("the loss is nan"))
