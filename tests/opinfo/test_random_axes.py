"""Methods with PyTorch's axes at random: several, negative, absent, by position and by name, kept
or not; of arrays without elements too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SHAPES = [(1,), (3,), (0,), (2, 3), (3, 0), (1, 1), (2, 1, 3), (2, 0, 2)]
DTYPES = ["float32", "float64", "int64", "bool"]
Arguments = tuple[list[Any], dict[str, Any]]
MANY = "sum mean amax amin all any nansum nanmean logsumexp count_nonzero std var"
ONE = "argmax argmin prod"
ALONG = "cumsum cumprod logcumsumexp unbind sort median topk"
MOVED = """flip roll unsqueeze squeeze flatten permute movedim swapaxes chunk split tensor_split
    narrow select diff tril triu diagonal"""
# What differs on purpose: what is said then, and why.
DIFFERENCES = (
    "booleans", "not b1", "uint64",
    "of no elements", "over no elements",  # where PyTorch has a NaN
)  # fmt: skip


class Axes:
    def __init__(self, seed: list[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def any_of(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def one(self, x: np.ndarray) -> int:
        return int(self.rng.integers(-x.ndim, x.ndim + (self.rng.random() < 0.1)))

    def several(self, x: np.ndarray) -> Any:
        count = int(self.rng.integers(1, x.ndim + 1))
        found = [int(a) - self.any_of([0, x.ndim]) for a in self.rng.permutation(x.ndim)[:count]]
        return found if self.any_of([True, False]) else tuple(found)

    def reduction(self, x: np.ndarray, name: str) -> Arguments:
        if self.rng.random() < 0.2 and name not in ("logsumexp", "std", "var"):
            return [], {}
        dim = self.several(x) if name in MANY.split() and self.any_of([0, 1]) else self.one(x)
        keep = self.any_of([True, False])
        if name == "count_nonzero":
            return self.any_of([([dim], {}), ([], {"dim": dim})])
        ways: list[Arguments] = [([], {"dim": dim, "keepdim": keep}), ([], {"dim": dim})]
        if name in ("std", "var"):  # by position there is NumPy's correction
            return self.any_of(ways)
        return self.any_of([*ways, ([dim, keep], {}), ([dim], {"keepdim": keep}), ([dim], {})])

    def along(self, x: np.ndarray, name: str) -> Arguments:
        dim = self.one(x)
        if name == "sort":
            return [], {"dim": dim, "stable": True, "descending": self.any_of([True, False])}
        if name == "topk":
            return [self.any_of([0, 1, 2])], {"dim": dim}
        if name == "median":
            return [], {"dim": dim, "keepdim": self.any_of([True, False])}
        return self.any_of([([dim], {}), ([], {"dim": dim})])

    def moved(self, x: np.ndarray, name: str) -> Arguments:
        one, other = self.one(x), self.one(x)
        number = int(self.rng.integers(-3, 4))
        ways: dict[str, Callable[[], Arguments]] = {
            "flip": lambda: ([self.several(x)], {}),
            "roll": lambda: ([number, one], {}),
            "unsqueeze": lambda: ([], {"dim": int(self.rng.integers(-x.ndim - 1, x.ndim + 1))}),
            "squeeze": lambda: ([], {"dim": one}),
            "flatten": lambda: ([0], {"end_dim": one}),
            "permute": lambda: ([tuple(self.rng.permutation(x.ndim).tolist())], {}),
            "movedim": lambda: ([one, other], {}),
            "swapaxes": lambda: ([one, other], {}),
            "chunk": lambda: ([abs(number) + 1], {"dim": one}),
            "split": lambda: ([abs(number) + 1], {"dim": one}),
            "tensor_split": lambda: ([self.any_of([2, (1,), (0, 2)])], {"dim": one}),
            "narrow": lambda: ([one, 0, abs(number)], {}),
            "select": lambda: ([one, number], {}),
            "diff": lambda: ([], {"n": abs(number), "dim": one}),
            "tril": lambda: ([number], {}),
            "triu": lambda: ([], {"diagonal": number}),
            "diagonal": lambda: ([], {"offset": number, "dim1": one, "dim2": other}),
        }
        return ways[name]()


def parts(x: Any) -> list[Any]:
    return [p for y in x for p in parts(y)] if isinstance(x, tuple | list) else [x]


def told(name: str, x: np.ndarray, args: list[Any], named: dict[str, Any]) -> str:
    """How the method of a tensor differs from that of PyTorch's."""
    try:
        wanted = [(np.asarray(y), str(y.dtype)) for y in parts(
            getattr(torch.tensor(x), name)(*args, **named))]  # fmt: skip
    except (RuntimeError, IndexError, TypeError, ValueError):
        wanted = None
    try:
        found = parts(getattr(rg.asarray(x), name)(*args, **named))
        given = [(np.asarray(y), f"torch.{y.dtype.name}") for y in found]
    except rg.RetrogradError as error:
        return "" if wanted is None else str(error)
    if wanted is None:
        return ""  # what PyTorch refuses may have a meaning here
    if len(given) != len(wanted):
        return "count"
    for (y, ours), (r, theirs) in zip(given, wanted, strict=True):
        if (y.shape, ours) != (r.shape, theirs):
            return f"{y.shape} {ours}, PyTorch {r.shape} {theirs}"
        if not np.allclose(y, r, 1e-5, 1e-5, equal_nan=True):
            return f"{y}, PyTorch {r}"
    return ""


@pytest.mark.filterwarnings("ignore:(std|var).*degrees of freedom:UserWarning")
@pytest.mark.parametrize("name", f"{MANY} {ONE} {ALONG} {MOVED}".split())
def test_methods(name: str) -> None:
    compared = 0
    for i in range(24):
        d = Axes([i, sum(map(ord, name))])
        x = np.asarray(d.rng.integers(-2, 3, d.any_of(SHAPES))).astype(d.any_of(DTYPES))
        kind = "along" if name in ALONG.split() else "moved" if name in MOVED.split() else ""
        args, named = getattr(d, kind or "reduction")(x, name)
        problem = told(name, x, args, named)
        excused = any(word in problem for word in DIFFERENCES)
        assert not problem or excused, f"{x!r}.{name}(*{args}, **{named}): {problem}"
        compared += not problem
    assert compared > 12
