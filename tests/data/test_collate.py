"""From samples to batches."""

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import default_collate, default_convert, pad, ragged
from retrograd.data.randomness import CURRENT, SampleContext

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


def test_structures_are_kept():
    x = np.ones(3, np.float32)
    samples = [{"p": Pair(x * i, [i, "t"]), "q": (i, Point(float(i), [i, i]))} for i in range(2)]
    batch = default_collate(samples)
    assert isinstance(batch["p"], Pair)
    assert batch["p"].a.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert batch["p"].b[0].tolist() == [0, 1]
    assert batch["p"].b[1] == ["t", "t"]
    assert isinstance(batch["q"], tuple)
    assert isinstance(batch["q"][1], Point)
    assert batch["q"][1].y.shape == (2, 2)


@pytest.mark.parametrize(
    ("samples", "dtype"),
    [
        ([1.5, 2], rg.float32),
        ([1, 2], rg.int64),
        ([True, False], rg.bool),
        ([1j, 1], rg.complex64),
        ([np.float64(1), np.float64(2)], rg.float64),
        ([np.int8(1), np.int8(2)], rg.int8),
        ([np.ones(2, np.float16), np.ones(2, np.float32)], rg.float32),
        ([np.ones(2, np.int8), np.ones(2, np.float32)], rg.float32),
        ([[1.0, 2.0]], rg.float32),
        ([rg.ones(2), rg.ones(2)], rg.float32),
        ([rg.tensor(1.0, requires_grad=True), 2.0], rg.float32),
        ([np.zeros((), np.uint8)], rg.uint8),
        ([[], []], rg.float32),
    ],
)
def test_dtypes(samples, dtype):
    batch = default_collate(samples)
    assert batch.dtype is dtype
    assert batch.shape[0] == len(samples)
    assert not batch.requires_grad
    assert batch.tolist() == [np.asarray(s).tolist() if not isinstance(s, rg.Tensor) else
                              s.detach().tolist() for s in samples]  # fmt: skip


def test_text_is_that_of_python():
    assert [type(x) for x in default_collate([np.str_("a"), "b"])] == [str, str]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]


def test_batches_share_no_memory_with_samples():
    x = np.ones(2)
    for made in (default_collate([x])[0], ragged([x])[0], default_convert(x)):
        x[0] = 7.0
        assert made.tolist() == [1.0, 1.0]
        x[0] = 1.0


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([np.ones(2), np.ones(3)], rg.ShapeError,
         r"sample 1 of the batch has \(3,\) and sample 0 of the batch has \(2,\).*pad=0.*ragged"),
        ([(1, np.ones(2)), (2, np.ones(3))], rg.ShapeError, r"sample 1 of the batch, at \[1\], h"),
        ([{"a": 1}, {"b": 1}], rg.ArgumentError, r"\['a'\] are missing; 'b' is new"),
        ([{"label": 1}, {"labels": 1}], rg.ArgumentError, r"'labels' is new \(near: 'label'\)"),
        ([(1, 2), (1, 2, 3)], rg.ArgumentError, "sample 1 of the batch has 3 parts, sample 0"),
        ([(1, 2), 3], rg.ArgumentError, "sample 1 of the batch has int"),
        ([1, None], rg.DTypeError, "sample 1 of the batch is None, of which no batch"),
        ([None, None], rg.DTypeError, "sample 0 of the batch is None"),
        ([{"a": object()}], rg.DTypeError, r"at \['a'\], is object, .*collate_fn=f"),
        ([1, "a"], rg.DTypeError, "sample 1 of the batch is str"),
        (["a", 1], rg.DTypeError, "sample 1 of the batch is int"),
        ([{"a": 1}, 2], rg.DTypeError, "sample 1 of the batch is int"),
        ([np.array(["a"])], rg.DTypeError, "an array of <U1"),
        ([[[1, 2], [3]]], rg.ShapeError, "sample 0 of the batch is the nested sequence is ragged"),
        ([], rg.ArgumentError, "at least one sample"),
    ],
)  # fmt: skip
def test_what_makes_no_batch(samples, error, message):
    with pytest.raises(error, match=message):
        default_collate(samples)


def test_a_loaders_numbers_are_in_the_message():
    context = SampleContext(0, 0)
    context.indices = [17, 4]
    token = CURRENT.set(context)
    try:
        with pytest.raises(rg.ShapeError, match=r"sample 4 has \(3,\) and sample 17 has \(2,\)"):
            default_collate([np.ones(2), np.ones(3)])
    finally:
        CURRENT.reset(token)


def test_padding():
    a, b = np.ones((1, 3)), np.full((2, 2), 2.0)
    out = pad([a, b], value=-1)
    expected = np.full((2, 2, 3), -1.0)
    expected[0, :1, :3], expected[1, :2, :2] = a, b
    assert out.tolist() == expected.tolist()
    assert pad([[1], [1, 2, 3]], multiple_of=4).shape == (2, 4)
    tokens, targets, n = pad([([1], [2], 1), ([3, 4], [5, 6], 2)], value=(0, -100, 0))
    assert tokens.tolist() == [[1, 0], [3, 4]]
    assert targets.tolist() == [[2, -100], [5, 6]]
    assert n.tolist() == [1, 2]
    assert pad([{"x": [1], "y": "a"}, {"x": [], "y": "b"}], value={"x": 7, "y": 0})["y"] == [
        "a",
        "b",
    ]
    assert pad([[], [1, 2]]).dtype is pad([[1, 2], []]).dtype is rg.int64
    with pytest.raises(rg.ShapeError, match="as many axes"):
        pad([np.ones(2), np.ones((2, 2))])
    with pytest.raises(rg.ArgumentError, match="no value for the part 1"):
        pad([(1, 2)], value=(0,))
    with pytest.raises(rg.DTypeError):
        pad([np.ones(1, np.uint8), np.ones(2, np.uint8)], value=-1)


def test_ragged_lists():
    xs, n = ragged([([1, 2], 2), ([3], 1)])
    assert [x.tolist() for x in xs] == [[1, 2], [3]]
    assert n.tolist() == [2, 1]
    assert ragged([np.float32(1), np.float32(2)]).shape == (2,)


def test_single_samples():
    made = default_convert(
        {"a": np.ones(2), "b": [1, 2], "c": Pair(1, "t"), "d": [np.ones(1), "u"]}
    )
    assert made["a"].shape == made["b"].shape == (2,)
    assert made["c"] == Pair(1, "t")
    assert isinstance(made["d"][0], rg.Tensor)


@pytest.mark.torch
def test_against_pytorch():
    import torch
    from torch.utils.data import default_collate as theirs

    samples = [
        {"x": torch.arange(3.0) + i, "y": (i, np.full(2, i)), "n": f"s{i}", "z": torch.tensor(i)}
        for i in range(4)
    ]
    mine, other = default_collate(samples), theirs(samples)
    assert mine["x"].tolist() == other["x"].tolist()
    assert mine["y"][0].tolist() == other["y"][0].tolist()
    assert mine["y"][1].tolist() == other["y"][1].tolist()
    assert mine["z"].tolist() == other["z"].tolist()
    assert mine["n"] == other["n"]
