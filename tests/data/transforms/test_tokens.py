"""Text and tokens."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import CharTokenizer
from retrograd.data.transforms import Compose, NextToken, PadTo, RandomWindow, Tokenize, Truncate


def test_from_text_to_a_pair():
    t = Compose([Tokenize(CharTokenizer("abc"), "int32", end=False), Truncate(3), PadTo(5, 9),
                 NextToken()])  # fmt: skip
    x, y = t("cab")
    assert x.tolist() == [3, 2, 0, 9]
    assert y.tolist() == [2, 0, 9, 9]
    assert x.dtype == np.int32


def test_a_tokenizer_of_hugging_face():
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"low": 4, "?": 0}, "?"))
    assert Tokenize(words)("low").tolist() == [4]


def test_windows():
    t = RandomWindow(3)
    starts = {int(t(range(10))[0]) for _ in range(200)}
    assert starts == set(range(8))
    assert t([1, 2]).tolist() == [1, 2]
    assert np.array_equal(np.diff(t(np.arange(10))), [1, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PadTo(2)([1, 2, 3]), r"there are 3 tokens; Truncate\(2\) comes before"),
        (lambda: NextToken()([1]), "1 tokens have none"),
        (lambda: Truncate(0), "a positive integer"),
        (lambda: Tokenize(len), "has no encode"),
        (lambda: RandomWindow(2)([[1]]), r"a vector, not of the shape \(1, 1\)"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(rg.RetrogradError, match=message):
        make()
