"""What usually makes an operation give a NaN or an infinity, and what helps."""

from __future__ import annotations

from typing import NamedTuple

from retrograd.ir import Node, entering
from retrograd.ops import elementwise as el
from retrograd.ops.elementwise import Cast
from retrograd.ops.index import ScatterAdd
from retrograd.ops.matmul import DotGeneral
from retrograd.ops.reduce import ReduceProd, ReduceSum
from retrograd.ops.scan import CumSum
from retrograd.ops.special import functions as special


class Cause(NamedTuple):
    why: str
    remedy: str


_GUARD = (
    "choose a harmless operand first, x = rg.where(ok, x, 1), and then the result, "
    "rg.where(ok, f(x), 0)"
)
_LOG = Cause(
    "the logarithm of 0 is -inf, that of a negative number NaN",
    "use log_softmax, logsumexp, log1p or xlogy where they fit, keep the operand away from 0 "
    f"with rg.maximum(x, 1e-12), or {_GUARD}",
)
_DIVISION = Cause(
    "a division by zero, or by a number so small that the quotient overflows",
    f"add a small number to the denominator, or {_GUARD}",
)
_EXP = Cause(
    "exp overflows, for float32 beyond 88.7, for float64 beyond 709.8, for float16 beyond 11.1",
    "subtract the maximum first, as softmax and logsumexp do, or clip the operand",
)
_ROOT = Cause("the square root of a negative number is NaN", "rg.maximum(x, 0), or rg.abs(x)")
_POWER = Cause(
    "0 to a negative power is infinite, a negative number to a power that is no integer NaN; and "
    "large results overflow",
    f"keep the base positive with rg.maximum(x, 1e-12), or {_GUARD}",
)
_ARC = Cause("the operand is outside of -1 to 1", "rg.clip(x, -1 + 1e-7, 1 - 1e-7)")
_SUM = Cause(
    "a sum or product of numbers that are finite became larger than the dtype holds, or "
    "infinities cancelled",
    "scale the operands (normalisation, a smaller learning rate, gradient clipping), or compute "
    "in a wider dtype",
)
_CAST = Cause(
    "the number is larger than the dtype holds; float16 ends at 65504",
    "use bfloat16, which has the range of float32, or scale the loss",
)
_POLE = Cause("the function has a pole there", f"keep the operand away from it, or {_GUARD}")

# By the name of the operation: what it is, and the same where a derivative is computed, by the
# operation that it is the derivative of.
CAUSES: dict[str, Cause] = {}
DERIVATIVES: dict[str, Cause] = {}
_cause, _cause_of_derivative = entering(CAUSES), entering(DERIVATIVES)

_cause(el.log, el.log2, el.log10, el.log1p, special.logit, special.xlogy, special.xlog1py)(_LOG)
_cause(el.div, el.zdiv, el.reciprocal, el.rsqrt)(_DIVISION)
_cause(el.exp, el.expm1, el.exp2, el.sinh, el.cosh)(_EXP)
_cause(el.sqrt)(_ROOT)
_cause(el.pow)(_POWER)
_cause(el.asin, el.acos, el.atanh, el.acosh, special.erfinv)(_ARC)
_cause(el.add, el.sub, el.mul, el.zmul, el.zzmul)(_SUM)
_cause(ReduceSum, ReduceProd, DotGeneral, CumSum, ScatterAdd)(_SUM)
_cause(Cast)(_CAST)
_cause(special.lgamma, special.digamma, special.zeta, special.gamma)(_POLE)

_cause_of_derivative(el.sqrt)(
    Cause(
        "the derivative of sqrt at 0 is infinite",
        "rg.sqrt(x + 1e-12); for the norm of a vector that may be 0 rg.linalg.vector_norm(v), "
        "whose gradient there is 0",
    )
)
_cause_of_derivative(el.pow)(
    Cause(
        "the derivative of x**p at 0 is infinite for p < 1, and that by p takes log x",
        f"keep the base positive with rg.maximum(x, 1e-12), or {_GUARD}",
    )
)
_cause_of_derivative(el.log)(Cause("the derivative of log at 0 is infinite", _LOG.remedy))
_cause_of_derivative(el.div)(_DIVISION)
_cause_of_derivative(el.asin, el.acos, el.atanh, el.acosh, special.erfinv)(
    Cause("the derivative is infinite at the ends of the domain", _ARC.remedy)
)
_cause_of_derivative(el.exp)(_EXP)
_cause_of_derivative(el.cbrt)(
    Cause("the derivative of cbrt at 0 is infinite", "rg.cbrt(x + 1e-12)")
)

# What reverse rules make of these operations where they fail.
_SENSITIVE = frozenset(
    (el.div, el.zdiv, el.reciprocal, el.rsqrt, el.log, el.pow, el.mul, el.zmul, el.zzmul)
)

_UNKNOWN = Cause(
    "the operands are outside of where the operation is defined, or the result is larger than the "
    "dtype holds",
    "look at the operands in front of this line",
)


def cause_of(node: Node) -> Cause:
    """The likely cause of the first value that is not finite."""
    origin = node.origin
    if origin is not None and origin.op in DERIVATIVES and node.prim in _SENSITIVE:
        return DERIVATIVES[origin.op]
    return CAUSES.get(node.op, _UNKNOWN)
