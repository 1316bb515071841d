"""`retrograd.nn.parameter`, where some scripts import from."""

import retrograd as rg
from retrograd.nn.parameter import Parameter


def test_it_is_the_same_class() -> None:
    assert Parameter is rg.nn.Parameter
