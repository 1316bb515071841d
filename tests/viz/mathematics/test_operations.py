"""Every operation has a plain word."""

import retrograd as rg
from retrograd.ir.registry import REGISTRY
from retrograd.viz.mathematics.operations import WORDS, word


def test_none_lacks_a_word_and_no_word_is_of_an_operation_that_there_is_not():
    assert rg.nn, "all operations are registered"
    known = {op for op in REGISTRY if getattr(REGISTRY[op], "__module__", "").startswith("retro")}
    assert known - set(WORDS) == set()
    assert set(WORDS) - set(REGISTRY) == set()


def test_words_are_plain():
    assert [op for op, text in WORDS.items() if "_" in text or len(text) > 45] == []


def test_words_that_no_pupil_would_guess():
    assert [word(op) for op in ("dot_general", "zmul", "sech2", "permute", "reduce_sum")] == [
        "matrix product", "multiply", "1 / cosh²", "transpose", "sum",
    ]  # fmt: skip
    assert word("my_own") == "my own"
