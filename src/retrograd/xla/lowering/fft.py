"""The discrete Fourier transform."""

from __future__ import annotations

from typing import Any

from retrograd.ir import Node
from retrograd.ops.fft import Fft
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(Fft)
def fft(t: JaxTrace, node: Node, x: Any) -> Any:
    prim: Any = node.prim
    kind = t.jnp.fft.ifft if prim.inverse else t.jnp.fft.fft
    return kind(x, axis=prim.axis, norm="forward" if prim.inverse else "backward")
