"""Random samples as one operation.

What a sample is computed by are hundreds of small operations. In a graph that is compiled they are
written out; where a graph is interpreted, NumPy does all of them at one node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from retrograd.autodiff import batched as stacked
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.ir import Dim, Node, Op, Shape, TensorType, Trait, declare, float64, uint32
from retrograd.ops.leaf import input_node
from retrograd.ops.random.sampling import FORMULAS, GraphSampleMath, NumPySampleMath, SampleFormula

_ARRAYS, _NODES = NumPySampleMath(), GraphSampleMath()


@declare
class Draw(Op):
    """Samples of a distribution, one of `FORMULAS`, from a key of two uint32 and parameters in the
    shape of the samples, with numbers that say more.

    A function of the key and the parameters, to the bit; not differentiable: whoever draws says how
    a sample moves with the parameters.
    """

    name = "draw"
    traits = frozenset({Trait.ROUNDED_ONCE})
    law: str
    shape: Shape
    settings: tuple[float, ...] = ()

    @property
    def formula(self) -> SampleFormula:
        """How samples are computed."""
        return FORMULAS[self.law]

    def infer(self, *types: TensorType) -> TensorType:
        if self.law not in FORMULAS:
            raise OptionError(f"{self} of {types[0]}: there is no such distribution")
        formula = self.formula
        if len(types) != 1 + formula.parameters or len(self.settings) != formula.settings:
            raise ShapeError(
                f"{self} takes a key, {formula.parameters} parameters and {formula.settings} "
                f"settings, not {', '.join(map(str, types))}"
            )
        key, *parameters = types
        if key.dtype is not uint32 or key.shape != (2,):
            error = ShapeError if key.dtype is uint32 else DTypeError
            raise error(f"{self} takes a key u32[2], not {key}")
        if any(not isinstance(d, Dim) and d < 0 for d in self.shape):
            raise ShapeError(f"{self} of {types[0]}: sizes are not negative")
        for p in parameters:
            if p.dtype is not float64:
                raise DTypeError(f"{self} takes parameters in double precision, not {p}")
            if p.shape != self.shape:
                raise ShapeError(f"{self} takes parameters of its shape, not {p}")
        return TensorType(formula.dtype, self.shape)

    def reference(self, *arrays: Any) -> Any:
        formula = self.formula
        with np.errstate(all="ignore"):
            y = formula.draw(_ARRAYS, arrays[0], self.shape, *arrays[1:], *self.settings)
        return np.asarray(y, formula.dtype.dtype)

    def written(self, *inputs: Node) -> Node:
        """The samples as nodes of the operations that they are computed by."""
        y = self.formula.draw(_NODES, inputs[0], self.shape, *inputs[1:], *self.settings)
        assert isinstance(y, Node)
        return y

    def vjp(self, g: Node, y: Node, *inputs: Node) -> Sequence[Node | None]:
        return (None,) * len(inputs)

    def jvp(self, tangents: Sequence[Node | None], y: Node, *inputs: Node) -> Node | None:
        return None

    def batch(self, size: int | Dim, batched: Sequence[bool], *inputs: Node) -> Node:
        samples: dict[Node, Node] = {}
        own = []
        for x, flag in zip(inputs, batched, strict=True):
            own.append(input_node(x.type.with_shape(x.shape[1:])) if flag else x)
            if flag:
                samples[own[-1]] = x
        ((y, _),) = stacked([self.written(*own)], samples, size)
        return y
