"""Arrays of other libraries, and ours in theirs, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg


def test_export_by_dlpack():
    x = rg.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    options: dict[str, Any]
    for options in (
        {}, {"max_version": (1, 0)}, {"max_version": (0, 8)}, {"copy": True}, {"stream": None},
        {"dl_device": (1, 0)}, {"max_version": (1, 1), "copy": True, "dl_device": (1, 0)},
        {"max_version": (1, 0), "copy": False},
    ):  # fmt: skip
        assert type(x.__dlpack__(**options)).__name__ == "PyCapsule"
    with pytest.raises(rg.OptionError):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    assert np.shares_memory(np.from_dlpack(x, copy=False), x.numpy())


def test_import_shares_the_memory_of_another_library() -> None:
    theirs = np.arange(6.0).reshape(2, 3)
    ours = rg.from_dlpack(theirs)
    assert (ours.dtype, ours.shape) == (rg.float64, (2, 3))
    assert np.shares_memory(ours.numpy(), theirs)
    copied = rg.from_dlpack(theirs, copy=True)
    theirs[0, 0] = 9
    assert (ours.tolist()[0][0], copied.tolist()[0][0]) == (9, 0)


def test_bfloat16_goes_round_though_numpy_knows_none() -> None:
    x = rg.asarray([1.0, -2.5, 3e38], dtype=rg.bfloat16)

    class Theirs:
        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return x.__dlpack_device__()

    y = rg.from_dlpack(Theirs())
    assert y.dtype is rg.bfloat16
    assert y.tolist() == x.tolist()


def test_what_has_a_history_or_is_elsewhere_is_refused() -> None:
    with pytest.raises(rg.GradientError, match=r"export x\.detach"):
        rg.tensor([1.0], requires_grad=True).__dlpack__()

    class OnAnotherDevice:
        __dlpack__ = None

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

    with pytest.raises(BufferError, match=r"\(2, 0\); move it to the CPU"):
        rg.from_dlpack(OnAnotherDevice())
