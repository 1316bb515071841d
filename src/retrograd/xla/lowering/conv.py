"""Convolution, which XLA has with all that its gradients need."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Node
from retrograd.ops.conv import Conv
from retrograd.xla.lowering.rules import JaxTrace, lowers


@lowers(Conv)
def conv(t: JaxTrace, node: Node, x: Any, w: Any) -> Any:
    """Half precision is summed in float32. Complex numbers by their parts."""
    if node.type.size == 0 or x.size == 0 or w.size == 0:
        return t.full(node, 0)
    x = t.last(node.inputs[0], x)
    return t.channels_second(node, (_of_parts if node.dtype.is_complex else _real)(t, node, x, w))


def _real(t: JaxTrace, node: Node, x: Any, w: Any) -> Any:
    """With channels last, as XLA computes it on a CPU."""
    prim: Any = node.prim
    wide = np.float32 if node.dtype.is_half else x.dtype
    places = "XYZUVABD"[: prim.rank]
    last = f"N{places}C", f"{places}IO", f"N{places}C"
    inner = range(2, w.ndim)
    y = t.lax.conv_general_dilated(
        x,
        t.lax.transpose(w, (*inner, 1, 0)),
        prim.strides,
        list(zip(map(int, prim.low), map(int, prim.high), strict=True)),
        prim.x_dilation,
        prim.w_dilation,
        dimension_numbers=last,
        feature_group_count=int(prim.groups),
        precision=t.precision,
        preferred_element_type=wide,
    )
    return t.lax.convert_element_type(y, x.dtype)


def _of_parts(t: JaxTrace, node: Node, x: Any, w: Any) -> Any:
    (a, b), (c, d) = ((t.lax.real(z), t.lax.imag(z)) for z in (x, w))
    return t.lax.complex(
        _real(t, node, a, c) - _real(t, node, b, d), _real(t, node, a, d) + _real(t, node, b, c)
    )
