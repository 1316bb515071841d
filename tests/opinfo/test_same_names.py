"""Every name that the table of PyTorch's names calls the same, called on both sides.

Where PyTorch's database has samples, these are called: plain functions in `test_opinfo.py`, methods
that change a tensor here. The rest is called with what is written out below.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.coming_from.hints import table

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytest.importorskip("expecttest", reason="OpInfo needs expecttest (extra: torch)")

from tests.opinfo import differences  # noqa: E402
from tests.opinfo.harness import (  # noqa: E402
    ENTRIES,
    as_numpy,
    check_close,
    everything,
    samples,
    weighted,
    weights_like,
)

pytestmark = pytest.mark.torch

SAME = {
    room: [name for name, entry in table("pytorch")[room].items() if entry.kind == "same"]
    for room in ("torch.Tensor", "torch")
}
COMPARED = {
    op.name for key, op in ENTRIES.items() if differences.absent(key) is None and "." not in key
}
rng = np.random.default_rng(0)
A, B = rng.uniform(0.1, 0.9, (2, 3, 3))
C = rng.normal(size=(2, 3, 4))
I = np.array([[3, -2, 5], [1, 0, 2]])  # noqa: E741
_OF_ONE = (
    "absolute arccos arcsin arcsinh arctan arctanh fix negative relu det inverse slogdet detach "
    "is_complex is_floating_point is_signed numel frexp adjoint dim element_size is_contiguous "
    "itemsize nbytes ndim ndimension nelement tolist is_cpu is_cuda is_sparse is_quantized "
    "retains_grad corrcoef"
)
_OF_TWO = (
    "arctan2 divide multiply subtract greater greater_equal less less_equal not_equal allclose "
    "is_same_size copy_ type_as"
)
_DTYPES = (
    "bfloat16 cfloat complex64 complex128 float float16 float32 float64 half int8 int16 int32 "
    "int64 uint8 uint16 uint32 uint64"
)
# Arguments of what the database has no samples of; arrays of floats are differentiated.
CALLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(_OF_ONE.split(), (A,)),
    **dict.fromkeys(_OF_TWO.split(), (A, B)),
    "arccosh": (1 + A,), "clip": (A, 0.3, 0.6), "matrix_power": (A, 3), "moveaxis": (C, 0, 2),
    "swapaxes": (C, 0, 2), "swapdims": (C, 0, 2), "fill_": (A, 0.5), "zero_": (A,),
    "detach_": (A,), "new_tensor": (A, [1.0, 2.0]), "item": (np.array(2.5),),
    "is_nonzero": (np.array([2.5]),), "nanquantile": (C, 0.3, 1), "ger": (A[0], B[0]),
    "chain_matmul": (A, B, A), "concat": ([A, B], 1), "concatenate": ([A, B], 1),
    "threshold": (A, 0.5, -1.0), "as_tensor": (A,), "asarray": (A,), "tensor": (A.tolist(),),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"], (I, abs(I) + 1)),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], (I, abs(I))),
    "bitwise_not": (I,), "broadcast_shapes": ((2, 1), (3,)), "is_tensor": (A,),
}  # fmt: skip
# What is no function of arrays, each checked by a line of its own.
VALUES: dict[str, Callable[[], bool]] = {
    "e": lambda: rg.e == torch.e,
    "inf": lambda: rg.inf == torch.inf,
    "pi": lambda: rg.pi == torch.pi,
    "nan": lambda: rg.nan != rg.nan,
    "newaxis": lambda: rg.newaxis is torch.newaxis is None,
    "data": lambda: rg.from_numpy(A).data.tolist() == torch.from_numpy(A).data.tolist(),
    "device": lambda: repr(rg.device("cuda", 1)) == repr(torch.device("cuda", 1)),
    "dtype": lambda: rg.ones(2).dtype is rg.float32,
    "finfo": lambda: rg.finfo(rg.float32).eps == torch.finfo(torch.float32).eps,
    "iinfo": lambda: rg.iinfo(rg.int16).max == torch.iinfo(torch.int16).max,
    "promote_types": lambda: rg.promote_types(rg.int8, rg.float64) is rg.float64,
    "result_type": lambda: rg.result_type(rg.ones(2), 1.0) is rg.float32,
    "from_numpy": lambda: rg.from_numpy(A).tolist() == torch.from_numpy(A).tolist(),
    "from_dlpack": lambda: rg.from_dlpack(A).tolist() == torch.from_dlpack(A).tolist(),
    "get_default_dtype": lambda: rg.get_default_dtype() == rg.float32,
    "is_grad_enabled": lambda: rg.is_grad_enabled() is True,
    "enable_grad": lambda: _recorded(rg.enable_grad()),
    "no_grad": lambda: not _recorded(rg.no_grad()),
    "set_grad_enabled": lambda: not _recorded(rg.set_grad_enabled(False)),
    "get_num_threads": lambda: isinstance(rg.get_num_threads(), int),
    "set_num_threads": lambda: callable(rg.set_num_threads),
    "vmap": lambda: rg.vmap(lambda x: x * 2)(rg.ones(3)).tolist() == [2.0] * 3,
}  # fmt: skip


NAMESPACES = ("fft", "linalg", "nn", "optim", "special")


@pytest.mark.parametrize("name", _DTYPES.split())
def test_dtypes(name: str) -> None:
    assert str(getattr(torch, name)).endswith(getattr(rg, name).name)


@pytest.mark.parametrize("name", NAMESPACES)
def test_namespaces(name: str) -> None:
    assert isinstance(getattr(rg, name), type(getattr(torch, name)))


def _recorded(setting: Any) -> bool:
    with setting:
        return bool((rg.tensor(1.0, requires_grad=True) * 2).requires_grad)


def base(name: str) -> str:
    return name[:-1] if name.endswith("_") else name


@pytest.mark.parametrize("room", SAME)
def test_every_name_is_called_somewhere(room: str) -> None:
    known = {*CALLS, *VALUES, *COMPARED, *_DTYPES.split(), *NAMESPACES}
    assert [n for n in SAME[room] if n not in known and base(n) not in known] == []


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    assert VALUES[name]()


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    for room in SAME:
        if name in SAME[room]:
            compare(room, name, CALLS[name])
    if f"{name}_" in SAME["torch.Tensor"]:
        compare("torch.Tensor", f"{name}_", CALLS[name])


def compare(room: str, name: str, given: tuple[Any, ...]) -> None:
    """Values, and gradients with respect to the arrays of floats; of what changes a tensor, values
    and what the tensor is afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = _result(torch, room, name, [_converted(x, torch.tensor) for x in given])
    ours = _result(rg, room, name, [_converted(x, rg.tensor) for x in given])
    wanted, found = everything(theirs), everything(ours)
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        check_close(x, y, f"{room}.{name}", 1e-9)
    floats = [x for x in wanted if isinstance(x, torch.Tensor) and x.is_floating_point()]
    if name.endswith("_") or name in ("detach", "as_tensor", "asarray", "frexp") or not floats:
        return
    leaves = [_converted(x, lambda a: torch.tensor(a, requires_grad=a.dtype.kind == "f"))
              for x in given]  # fmt: skip
    results = [x for x in everything(_result(torch, room, name, leaves)) if _differentiable(x)]
    if not results:
        return
    weights = weights_like(results, 1)
    weighted(results, weights, torch.tensor).backward()
    own = [_converted(x, lambda a: rg.tensor(a, requires_grad=a.dtype.kind == "f")) for x in given]
    found = [x for x in everything(_result(rg, room, name, own)) if _differentiable(x)]
    weighted(found, weights, rg.asarray).backward()
    for x, y in zip(everything(own), everything(leaves), strict=True):
        if isinstance(y, torch.Tensor) and y.grad is not None:
            check_close(x.grad, y.grad, f"gradient of {room}.{name}", 1e-9)


def _differentiable(x: Any) -> bool:
    return bool(getattr(x, "requires_grad", False)) and "float" in str(x.dtype)


def _converted(x: Any, make: Callable[[Any], Any]) -> Any:
    if isinstance(x, list):
        return [_converted(a, make) if isinstance(a, np.ndarray) else a for a in x]
    return make(x) if isinstance(x, np.ndarray) else x


def _result(library: Any, room: str, name: str, given: list[Any]) -> Any:
    if room == "torch":
        return getattr(library, name)(*given)
    first, *rest = given
    found = getattr(first, name)
    if not callable(found):
        return found
    result = found(*rest)
    return (result, first) if name.endswith("_") else result


CHANGED = [n for n in SAME["torch.Tensor"] if n.endswith("_") and base(n) in COMPARED - set(CALLS)]


@pytest.mark.parametrize("name", CHANGED)
def test_methods_that_change_a_tensor(name: str) -> None:
    """On the database's samples of the function: the result, which is the tensor itself."""
    seen = 0
    for key, op in ENTRIES.items():
        if op.name != base(name) or differences.absent(key) is not None or op.dtypes is None:
            continue
        dtype = next(d for d in (torch.float64, torch.int64) if d in op.dtypes)
        for sample in samples(op, getattr(rg.Tensor, name), dtype, 4):
            if differences.left_out(key, sample.text) is not None:
                continue
            seen += _changed(name, sample)
    assert seen


def _changed(name: str, sample: Any) -> int:
    arrays = sample.arrays

    def in_place(*given: Any) -> Any:
        first = given[0].clone()
        result = sample.of_own(first, *given[1:])
        assert result is first
        return result

    wanted = sample.of_torch(*map(torch.tensor, arrays))
    if not isinstance(wanted, torch.Tensor) or not arrays or wanted.shape != arrays[0].shape:
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = in_place(*map(rg.asarray, arrays))
    check_close(found, as_numpy(wanted).astype(arrays[0].dtype), f"{name}: {sample.text}", 1e-9)
    return 1
