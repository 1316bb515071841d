"""`Value` where micrograd has it."""

import retrograd as rg


def test_the_names_of_micrograd():
    from retrograd.micrograd.engine import Value
    from retrograd.micrograd.nn import Module

    assert Value is rg.Value
    assert rg.micrograd.Module is Module
