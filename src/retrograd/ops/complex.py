"""Complex numbers: taken apart and put together.

Cotangents inside of `autodiff` are *bilinear*: `c` with `dL = Re(c dz)`, the conjugate of the
gradient `dL/dRe + i dL/dIm` that users get (`autodiff/reverse.py` converts at both ends). With this
convention a rule that multiplies by a derivative is right for complex numbers as it stands, and
only what takes a number apart needs the rules below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.errors import DTypeError
from retrograd.ir import Dim, Node, Op, TensorType, declare, full
from retrograd.ops.shape import stack_front


class ComplexPart(Op):
    """One of the two parts of a complex number."""

    arity = 1

    def infer(self, *types: TensorType) -> TensorType:
        (z,) = types
        if not z.dtype.is_complex:
            raise DTypeError(f"{self.name} takes complex numbers, not {z}")
        return z.with_dtype(z.dtype.real)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None if tangents[0] is None else self(tangents[0])

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*inputs)


@declare
class Real(ComplexPart):
    """The real part of complex numbers."""

    name = "real"

    def reference(self, *arrays: Any) -> Any:
        return np.real(arrays[0]).copy()

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (complex_(g, full(0, g.type)),)  # Re(g dz) = g Re(dz)


@declare
class Imag(ComplexPart):
    """The imaginary part of complex numbers."""

    name = "imag"

    def reference(self, *arrays: Any) -> Any:
        return np.imag(arrays[0]).copy()

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (complex_(full(0, g.type), -g),)  # Re(-ig dz) = g Im(dz)


@declare
class Complex(Op):
    """`x + i y`, of two real arrays of one shape and dtype, float32 or float64."""

    name = "complex"
    arity = 2

    def infer(self, *types: TensorType) -> TensorType:
        x, y = types
        if x != y or not x.dtype.is_float or x.dtype.is_half:
            raise DTypeError(
                f"complex takes real and imaginary parts of one shape, both float32 or both "
                f"float64, not {x} and {y}"
            )
        return x.with_dtype(x.dtype.complex)

    def reference(self, *arrays: Any) -> Any:
        x, y = arrays
        z = np.empty(x.shape, np.result_type(x.dtype, np.complex64))
        z.real, z.imag = x, y
        return z

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return real(g), -imag(g)  # Re(g (dx + i dy)) = Re(g) dx - Im(g) dy

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        if all(t is None for t in tangents):
            return None
        zero = full(0, inputs[0].type)
        return self(*[zero if t is None else t for t in tangents])

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        return self(*stack_front(size, batched, inputs))


def real(z: Node) -> Node:
    """The real part; of real numbers themselves."""
    return Real()(z) if z.dtype.is_complex else z


def imag(z: Node) -> Node:
    """The imaginary part; of real numbers zero."""
    return Imag()(z) if z.dtype.is_complex else full(0, z.type)


def complex_(x: Node, y: Node) -> Node:
    """`x + i y`."""
    return Complex()(x, y)


def conj(z: Node) -> Node:
    """The complex conjugate; of real numbers themselves."""
    return complex_(real(z), -imag(z)) if z.dtype.is_complex else z
