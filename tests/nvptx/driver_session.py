"""The real bindings on a driver of our own: what `test_driver.py` runs in a process of its own."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.nvptx import missing
from retrograd.nvptx.driver import device
from retrograd.nvptx.executable import DeviceProgram
from tests.nvptx import ptx_interpreter


class HostMemory(ptx_interpreter.Memory):
    """Memory of this process: every address is one."""

    def __init__(self) -> None:
        super().__init__()
        size = (1 << 47) - 256
        pointer = ctypes.cast(256, ctypes.POINTER(ctypes.c_uint8))
        self.bytes = np.ctypeslib.as_array(pointer, (size,))
        self.valid = None  # type: ignore[assignment]


def main(library: str) -> None:
    stub = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    launched = ctypes.CFUNCTYPE(
        None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint,
        ctypes.POINTER(ctypes.c_void_p),
    )  # fmt: skip
    noted = ctypes.CFUNCTYPE(None, ctypes.c_int)
    state: dict[str, Any] = {"list": None, "graph": [], "graphs": 0}
    module_of = cache(ptx_interpreter.Module)
    memory = HostMemory()
    ptx_interpreter.BASE = 256

    def launch(text: bytes, name: bytes, blocks: int, threads: int, parameters: Any) -> None:
        module = module_of(text.decode())
        f = module.functions[name.decode()]
        words = [
            ctypes.cast(parameters[i], ctypes.POINTER(ctypes.c_int64))[0]
            for i in range(len(f.parameters))
        ]

        def run() -> None:
            ptx_interpreter.run(module, memory, {}, name.decode(), words, blocks, threads)

        if state["list"] is None:
            run()
        else:
            state["list"].append(run)

    def note(what: int) -> None:
        if what == 0:
            state["list"] = []
        elif what == 1:
            state["graph"], state["list"] = state["list"], None
        else:
            state["graphs"] += 1
            for run in state["graph"]:
                run()

    kept = launched(launch), noted(note)
    stub.stub_set(*kept, ctypes.c_size_t(1 << 24), 0)
    assert "finds no device" in str(missing()), missing()
    stub.stub_set(*kept, ctypes.c_size_t(1 << 26), 1)
    assert missing() is None
    found = device()
    assert (found.capability, found.name) == (80, "a stub")
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)

    def f(x: Any) -> Any:
        return rg.softmax(x * 2 + 1), x.sum()

    program = DeviceProgram(rg.trace(f, x), found)
    with rg.backend("llvm"):
        expected = [np.asarray(y) for y in f(rg.tensor(x))]
    for _ in range(4):
        for y, r in zip(program([x]), expected, strict=True):
            np.testing.assert_array_equal(y, r)
    assert state["graphs"] >= 2
    with pytest.raises(rg.MemoryLimitError, match="on a stub"):
        found.allocate(1 << 40)
    assert "cuda" in rg.backends()
    compiled = rg.jit(rg.value_and_grad(lambda x: (f(x)[0] ** 2).sum()))
    with rg.backend("llvm"):
        wanted = compiled(x)
    with rg.backend("cuda"):
        for _ in range(3):
            for y, r in zip(compiled(x), wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(y), np.asarray(r))
        z = rg.tensor(x, requires_grad=True)
        loss = (rg.softmax(z) ** 2).sum()
        loss.backward()
        assert z.grad is not None
        np.testing.assert_array_equal(
            np.asarray(z.grad),
            np.asarray(rg.grad(lambda x: (rg.softmax(x) ** 2).sum())(rg.tensor(x))),
        )
    sys.stdout.write("done")


if __name__ == "__main__":
    main(sys.argv[1])
