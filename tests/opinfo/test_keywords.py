"""Functions that the tables call the same, called with all arguments under PyTorch's names."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.coming_from.hints import table

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
pytest.importorskip("expecttest", reason="OpInfo needs expecttest (extra: torch)")

from tests.opinfo.harness import ENTRIES, _own_argument, as_numpy, everything  # noqa: E402

pytestmark = pytest.mark.torch

# Where the names of PyTorch's functions are, and what PyTorch puts before those of its schemas.
ROOMS: dict[str, tuple[Any, Any, str]] = {
    "torch": (torch, rg, ""),
    "torch.linalg": (torch.linalg, rg.linalg, "linalg_"),
    "torch.fft": (torch.fft, rg.fft, "fft_"),
    "torch.special": (torch.special, rg.special, "special_"),
}
KINDS = (torch.float32, torch.complex64, torch.int64, torch.bool)
OTHERWISE = {
    "empty_like": "its values are anybody's",
    "kthvalue": "of no axes",
    "argwhere": "of no axes",
    "tensorsolve": "moves axes in another way",
    "vander": "of no axes",
}
SCHEMAS = collections.defaultdict(list)
for _schema in torch._C._jit_get_all_schemas():
    if _schema.name.startswith("aten::") and not any(a.is_out for a in _schema.arguments):
        SCHEMAS[_schema.name[6:]].append([a.name for a in _schema.arguments])


def cases() -> list[tuple[str, Any]]:
    found = []
    for op in ENTRIES.values():
        room, _, name = f"torch.{op.name}".rpartition(".")
        entry = table("pytorch").get(room, {}).get(name)
        if room in ROOMS and entry is not None and entry.kind == "same" and name not in OTHERWISE:
            found.append((room, op))
    return found


def named_call(f: Any, name: str, args: list[Any], options: dict[str, Any], want: Any) -> Any:
    """The arguments of a call of PyTorch by name, as one of its schemas has them; None if none."""
    for names in SCHEMAS[name]:
        given = ["input" if n == "self" else n for n in names[: len(args)]]
        named = dict(zip(given, args, strict=False)) | options
        if len(named) == len(args) + len(options):
            try:
                again = f(**named)
            except (TypeError, RuntimeError, ValueError):
                continue
            pairs = zip(everything(want), everything(again), strict=True)
            if all(not isinstance(x, torch.Tensor) or x.isnan().any() or torch.equal(x, y)
                   for x, y in pairs):  # fmt: skip
                return named
    return None


def own(x: Any) -> Any:
    return type(x)(map(own, x)) if isinstance(x, list | tuple) else _own_argument(x)


@pytest.mark.slow
def test_all_arguments_by_name() -> None:
    torch.manual_seed(0)
    count, wrong = 0, {}
    with rg.backend("reference"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for room, op in cases():
            theirs, ours, prefix = ROOMS[room]
            name = op.name.rpartition(".")[2]
            kind = next(k for k in KINDS if k in op.dtypes)
            listed = [s for s in op.sample_inputs("cpu", kind) if getattr(s.input, "ndim", 1) > 0]
            for sample in listed[:: max(1, len(listed) // 2)]:
                args, f = [sample.input, *sample.args], getattr(theirs, name)
                try:
                    want = f(*args, **sample.kwargs)
                except TypeError:  # the entry calls it in another way
                    continue
                named = named_call(f, prefix + name, args, sample.kwargs, want)
                if named is None:
                    continue
                try:
                    got = getattr(ours, name)(**{k: own(v) for k, v in named.items()})
                    pairs = zip(everything(want), everything(got), strict=True)
                    for x, y in pairs:
                        x = np.asarray(as_numpy(x))
                        scale = max(1.0, np.abs(x).max(initial=0, where=np.isfinite(x)))
                        np.testing.assert_allclose(np.asarray(y), x, rtol=1e-4, atol=1e-5 * scale)
                    count += 1
                except Exception as error:  # all of them are shown
                    wrong[op.name, tuple(named)] = repr(error)[:300]
    assert not wrong
    assert count > 400
