"""What usually makes an operation give a NaN or an infinity, and what helps."""

from __future__ import annotations

from typing import NamedTuple

from retrograd.ir import Node


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

CAUSES = {
    **dict.fromkeys(("log", "log2", "log10", "log1p", "logit", "xlogy", "xlog1py"), _LOG),
    **dict.fromkeys(("div", "zdiv", "reciprocal", "remainder", "floor_divide"), _DIVISION),
    **dict.fromkeys(("exp", "expm1", "exp2", "sinh", "cosh"), _EXP),
    "sqrt": _ROOT,
    "rsqrt": _DIVISION,
    "pow": _POWER,
    **dict.fromkeys(("asin", "acos", "atanh", "acosh", "erfinv"), _ARC),
    **dict.fromkeys(("add", "sub", "mul", "zmul", "zzmul", "reduce_sum", "dot_general"), _SUM),
    **dict.fromkeys(("cumulative_sum", "cumsum", "reduce_prod", "scatter_add", "square"), _SUM),
    "cast": _CAST,
    **dict.fromkeys(("lgamma", "digamma", "polygamma", "zeta", "gamma"), _POLE),
}

# The same where a derivative is computed, by the operation that it is the derivative of.
DERIVATIVES = {
    "sqrt": Cause(
        "the derivative of sqrt at 0 is infinite",
        "rg.sqrt(x + 1e-12); for the norm of a vector that may be 0, take the root of a maximum: "
        "rg.sqrt(rg.maximum((v * v).sum(), 1e-12))",
    ),
    "pow": Cause(
        "the derivative of x**p at 0 is infinite for p < 1, and that by p takes log x",
        f"keep the base positive with rg.maximum(x, 1e-12), or {_GUARD}",
    ),
    "log": Cause("the derivative of log at 0 is infinite", _LOG.remedy),
    "div": _DIVISION,
    **dict.fromkeys(
        ("asin", "acos", "atanh", "acosh", "erfinv"),
        Cause("the derivative is infinite at the ends of the domain", _ARC.remedy),
    ),
    "exp": _EXP,
    "cbrt": Cause("the derivative of cbrt at 0 is infinite", "rg.cbrt(x + 1e-12)"),
}

_UNKNOWN = Cause(
    "the operands are outside of where the operation is defined, or the result is larger than the "
    "dtype holds",
    "look at the operands in front of this line",
)


def cause_of(node: Node) -> Cause:
    """The likely cause of the first value that is not finite."""
    origin = node.origin
    if origin is not None and origin.op in DERIVATIVES and node.op in _SENSITIVE:
        return DERIVATIVES[origin.op]
    return CAUSES.get(node.op, _UNKNOWN)


# What reverse rules make of the operations above where they fail.
_SENSITIVE = frozenset(("div", "zdiv", "reciprocal", "rsqrt", "log", "pow", "mul", "zmul", "zzmul"))
