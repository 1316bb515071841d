"""Patterns over the paths of a model."""

import pytest

from retrograd.distributed.shardings import Shardings, data_parallel, dotted, fully_sharded
from retrograd.errors import OptionError
from tests.xla.stand_in import stand_in

MESH = stand_in(data=4, model=2)


def test_the_first_pattern_that_matches_counts():
    s = Shardings({"blocks.*.up.weight": ("model",), "*.weight": (None, "model")})
    assert s.spec("blocks.3.up.weight", (8, 4), MESH) == ("model", None)
    assert s.spec("head.weight", (8, 4), MESH) == (None, "model")
    assert s.spec("head.bias", (8,), MESH) == (None,)


def test_fully_sharded_divides_the_longest_axis_that_it_divides():
    s = fully_sharded(small=16)
    assert s.spec("a", (8, 40), MESH) == (None, "data")
    assert s.spec("a", (8, 42), MESH) == ("data", None)
    assert s.spec("a", (7, 42), MESH) == (None, None)
    assert s.spec("a", (8, 1), MESH) == (None, None)  # small
    assert s.spec("a", (), MESH) == ()
    both = Shardings({"a": ("model", None)}, ("data",), "data", 16)
    assert both.spec("a", (80, 40), MESH) == ("model", "data")
    several = Shardings({}, (), ("data", "model"), 16)
    assert several.spec("a", (4, 16), MESH) == (None, ("data", "model"))
    with pytest.raises(OptionError, match="'date', which is no axis"):
        fully_sharded("date").spec("a", (800, 40), MESH)


def test_a_pattern_that_matches_nothing_is_an_error():
    s = Shardings({"blocks.*.upp.weight": ("model",)})
    with pytest.raises(OptionError, match=r"did you mean 'blocks\.0\.up\.weight'"):
        s.check_patterns(["blocks.0.up.weight", "head.bias"])


def test_shardings_are_joined():
    s = Shardings({"a": ("model",)}) | fully_sharded() | data_parallel()
    assert s.inputs == ("data",)
    assert s.fully_sharded == "data"
    assert set(s.parameters) == {"a"}


def test_paths_are_written_with_dots():
    assert dotted(".blocks[0].up.weight") == "blocks.0.up.weight"
    assert dotted("['exp_avg'][3]") == "exp_avg.3"
    assert dotted("") == ""
