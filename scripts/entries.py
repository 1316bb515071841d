"""What the page of operations needs beside the operations: under which name users know one, the
mathematics of those that users do not call, and one use of each op that has attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.ir import (
    DType,
    Graph,
    Op,
    TensorType,
    TupleType,
    as_dtype,
    bool_,
    int64,
    lookup,
)
from retrograd.ops.leaf import Constant, input_node

__all__ = ["GRADIENTS", "MATHEMATICS", "PUBLIC", "use", "with_own_dtype"]

# Elementwise operations whose mathematics stands in the docstring of a function of another name.
PUBLIC = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "floor_div": "floor_divide",
    "mod": "remainder", "neg": "negative", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "max": "maximum",
    "min": "minimum", "bitwise_not": "bitwise_invert", "lgamma": "gammaln",
}  # fmt: skip

# Elementwise operations that users meet in printed graphs only, or in another form.
MATHEMATICS = {
    "zmul": "`a * b`, but `a` where `a` is 0, whatever `b` is.",
    "zdiv": "`a / b`, but `a` where `a` is 0, whatever `b` is.",
    "sech2": "The derivative of `tanh`: `1 / cosh(x)^2`, accurate where `tanh(x)` is rounded to 1.",
    "zzmul": "`a * b`, but 0 where one of them is 0, whatever the other is.",
    "pow": "`a` to the power `b`. Of integers it wraps, and negative exponents give 0. `0^b` "
    "counts as constant in `b` from `b = 0` on.",
    "select": "`a` where the condition `c` is true, `b` elsewhere. The branch that is not taken "
    "gets a gradient of exactly 0, even where its value or derivative is infinite or NaN.",
    "clamp": "`min(max(x, lo), hi)`. The gradient in `x` is 0 at the limits and beyond.",
    "abs": "`|x|`; its derivative at 0 is 0.",
    "sign": "-1, 0 or 1; 0 at 0.",
    "round": "The nearest integer, ties to even.",
    "isnan": "Whether `x` is NaN.",
    "isinf": "Whether `x` is infinite.",
    "isfinite": "Whether `x` is neither NaN nor infinite.",
    "shift_left": "`a << b`; what is moved by a negative count, or by the width or more, is gone.",
    "shift_right": "`a >> b`, with the sign kept; a negative count, or one of the width or more, "
    "leaves copies of the sign.",
    "gammainc": "`P(a, x)`, the integral of `t^(a - 1) exp(-t) / Gamma(a)` for t from 0 to `x`.",
    "gammaincc": "`Q(a, x) = 1 - P(a, x)`, accurate where it is small.",
    "gammainc_dx": "The derivative of `P(a, x)` in `x`, a density.",
    "gammainc_da": "The derivative of `P(a, x)` in `a`.",
    "gammainc_daa": "The second derivative of `P(a, x)` in `a`. The third is not offered: NaN.",
    "betainc": "`I(a, b, x)`, the integral of `t^(a - 1) (1 - t)^(b - 1) / B(a, b)` for t "
    "from 0 to `x`.",
    "betainc_dx": "The derivative of `I(a, b, x)` in `x`, a density.",
    "betainc_da": "The derivative of `I(a, b, x)` in `a`.",
    "betainc_db": "The derivative of `I(a, b, x)` in `b`.",
    "betainc_daa": "The second derivative of `I(a, b, x)` in `a`. Third ones are not offered: NaN.",
    "hyp1f1_da": "The derivative of `M(a, b, x)` in `a`; of parameters and x up to 1e3. The second "
    "in these is not offered: NaN.",
    "hyp1f1_db": "The derivative of `M(a, b, x)` in `b`, likewise.",
    "hyp2f1_da": "The derivative of `F(a, b; c; x)` in `a`; of parameters up to 200 and x between "
    "-30 and 0.97. The second in these is not offered: NaN.",
    "hyp2f1_dc": "The derivative of `F(a, b; c; x)` in `c`, likewise.",
    "betainc_dab": "The mixed second derivative of `I(a, b, x)`. Third ones are not offered: NaN.",
    "betainc_dbb": "The second derivative of `I(a, b, x)` in `b`. Third ones are not offered: NaN.",
    "digamma": "The derivative of `lgamma`; NaN at the negative integers, ∓inf at ±0.",
    "trigamma": "The derivative of `digamma`.",
    "zeta": "Hurwitz' zeta function, the sum of `(k + q)^-s` for k from 0; inf at its poles, whole "
    "`q <= 0`. The derivative in `s` is `-sum_k log(k + q) (k + q)^-s` by Euler's and Maclaurin's "
    "formula; for `q <= 0`, where `s` has to be whole, it is NaN.",
    "bessel_j": "The Bessel function `J_n(x)` of the first kind, of whole order up to 31.",
    "bessel_ie": "`exp(-|x|) I_n(x)` of whole order up to 31; `exp(-|x|)` counts as flat at 0.",
    "implicit_exp": "`z`, the exponential of `a`, as a function of `a`.",
    "implicit_gamma": "`z`, a sample of the gamma distribution of shape `a`, as a function of `a`.",
    "implicit_log_gamma": "`z`, the logarithm of such a sample, as a function of `a`.",
    "implicit_beta": "`z`, a sample of the beta distribution, as a function of `a` and `b`.",
    "implicit_von_mises": "`z`, a sample of the von Mises distribution of concentration `k`, as a "
    "function of `k`.",
    "von_mises_slope": "How a sample `x` of the von Mises distribution moves with its "
    "concentration `k`. The derivative in `k` is not offered: NaN.",
    "portable_log": "`log(x)`, to the same bits everywhere.",
    "portable_exp": "`exp(x)`, to the same bits everywhere.",
    "portable_atan": "`atan(x)` for `x >= 0`, to the same bits everywhere.",
    "portable_log_factorial": "`log(x!)` for `x >= 0`, to the same bits everywhere.",
}

# Rules whose formula, with every permutation and comparison in it, would hide what they are.
GRADIENTS = {
    "erfcx": "`g * (2 * x * y - 2 / sqrt(pi))`, beyond `x = 8` by its asymptotic series",
    "implicit_log_gamma": "a: `-g * gammainc_da(a, z) / (z * gammainc_dx(a, z))` of `z = exp(y)`, "
    "`g * (digamma(a + 1) - y) / a` where z is tiny",
    "cast": "`g` in the dtype of x; none from or to integers and booleans",
    "reduce_prod": "`g` times the product of all the other elements",
    "reduce_max": "`g`, shared equally by the elements that are equal to `y`",
    "reduce_min": "`g`, shared equally by the elements that are equal to `y`",
    "logsumexp": "`g * exp(x - y)`, 0 where `y` is -inf",
    "linear_scan": "b: `s[t] = g[t] + a[t+1] * s[t+1]`, a: `s[t] * y[t-1]`",
    "cumprod": "`s[t] * y[t-1]` of `s[t] = g[t] + x[t+1] * s[t+1]`, `y[-1]` being 1",
    "logcumsumexp": "to `x[i]` the sum of `g[t] * exp(x[i] - y[t])` over all t from i on, by a "
    "`linear_scan`",
    "scatter_set": "x: `g`, 0 where an element was replaced, updates: `gather(g, index)`, 0 for an "
    "update that does not stay",
    "scatter_max": "`g`, shared equally by all that are equal to `y` at a position, elements of "
    "`x` and updates alike",
    "scatter_min": "`g`, shared equally by all that are equal to `y` at a position, elements of "
    "`x` and updates alike",
    "scatter_mul": "x: `g * scatter_mul(1, index, updates)`, updates: `gather(g, index)` times `x` "
    "and all the other updates of the position",
    "slice_set": "x: `g`, 0 where an element was replaced, value: the slice of `g`",
    "pad": "x: the part of `g` that holds x, value: the sum of the rest",
    "concat": "to each input its part of `g`",
    "dot_general": "a: `g` contracted with `b` over the free axes of `b`, b: `g` contracted with "
    "`a` over the free axes of `a`",
    "conv": "x: `conv(g, w)` with the kernel flipped, strides and `x_dilation` exchanged, w: "
    "`conv(x, g)` with samples for channels, strides and `w_dilation` exchanged",
    "max_pool": "`g`, added up at the first maximum of each window",
    "triangular_solve": "b: `s = a^-T g`, a: `-s y^T` within the triangle that is read",
    "lu": "`L^-T (tril(L^T gL, -1) + triu(gU U^T)) U^-T` for the rows `x[p]` of a square x; rows "
    "below the square enter by their `L2 = B2 U^-1`",
    "solve": "b: `s = a^-T g`, a: `-s y^T`",
    "inv": "a: `-y^T g y^T`",
    "least_squares": "with `h = conj(g)` and the pseudo-inverse P of x: b: `conj(s)` for "
    "`s = P^H h`, x: the conjugate of `-s y^H + (b - x y) (P s)^H + P^H y (h - x^H s)^H`",
    "det": "x: `g * cofactor(x)`",
    "logabsdet": "x: `g * x^-T`",
    "cofactor": "`cofactor_slope(x, g)`",
    "cofactor_slope": "t: `cofactor_slope(x, g)`, x: with `c = cofactor(x)` the derivative of "
    "`(<c, t> c - c t^T c) / det(x)` along `g`",
    "eigen_sum": "g: the real diagonal of `M = V^H g V`, x: `V (D * M) V^H`",
    "singular_sum": "g: the real diagonal of `U^H g V`, x: the tangent along `g`",
    "turn": "m: 0, NaN where something is asked of vectors of equal values",
    "lyapunov": "c: `conj(s)` for the solution s of `h s + s h = conj(g)`, h: the conjugate of "
    "`-(s y^H + y^H s)`, made hermitian",
    "polar": "x: the tangent along `g`",
    "nuclear_norm": "x: `g` times the unitary factor of x",
    "spectral_norm": "x: `g u v^H`, for the singular vectors of the largest singular value",
    "matrix_function": "the same operation with g in the place of a direction; x: along g as one "
    "direction more; numbers: g times that of the derivative of f by one",
    "expm": "the upper right block of `expm([[x^T, g], [0, x^T]])`",
    "complement": "`-y g^T q`",
    "dag_scan": "a `dag_scan` against the edges; with its states that of one call of the bodies "
    "on all nodes and edges",
}

DTYPE = object()  # stands for the dtype that is tried
AXIS = {"axis": 0}
WINDOWS = {"strides": (1,), "dilations": (1,)}
POOLING = {"sizes": (2,), **WINDOWS, "low": (0,), "high": (0,)}

# A body that gives what it is given.
SUM = "graph {\n  %0: f32[_rows, 2] = input\n  return %0\n}\n"

# For each op with attributes: attributes, and inputs by name and shape, of the dtype that is tried
# or of their own.
USES: dict[str, tuple[dict[str, Any], str]] = {
    "cast": ({"dtype": DTYPE}, "x[3]"),
    "reduce_sum": ({"axes": (1,)}, "x[2,3]"),
    "reduce_prod": ({"axes": (1,)}, "x[2,3]"),
    "reduce_max": ({"axes": (1,)}, "x[2,3]"),
    "reduce_min": ({"axes": (1,)}, "x[2,3]"),
    "logsumexp": ({"axes": (1,)}, "x[2,3]"),
    "reduce_any": ({"axes": (1,)}, "x[2,3]"),
    "reduce_all": ({"axes": (1,)}, "x[2,3]"),
    "argmax": (AXIS, "x[3]"),
    "argmin": (AXIS, "x[3]"),
    "cumsum": (AXIS, "x[3]"),
    "linear_scan": (AXIS, "a[3] b[3]"),
    "cumprod": (AXIS, "x[3]"),
    "logcumsumexp": (AXIS, "x[3]"),
    "cummax": (AXIS, "x[3]"),
    "cummin": (AXIS, "x[3]"),
    "cumargmax": (AXIS, "x[3]"),
    "cumargmin": (AXIS, "x[3]"),
    "sort": (AXIS, "x[3]"),
    "argsort": (AXIS, "x[3]"),
    "searchsorted": ({}, "row[5] values[3]"),
    "gather": (AXIS, "x[3] index:int64[5]"),
    "ravel_index": ({"sizes": (3, 4)}, "i:int64[5] j:int64[5]"),
    "scatter_add": (AXIS, "x[3] index:int64[5] updates[5]"),
    "scatter_set": (AXIS, "x[3] index:int64[5] updates[5]"),
    "scatter_max": (AXIS, "x[3] index:int64[5] updates[5]"),
    "scatter_min": (AXIS, "x[3] index:int64[5] updates[5]"),
    "scatter_mul": (AXIS, "x[3] index:int64[5] updates[5]"),
    "dag_order": ({"nodes": 3}, "edges:int64[2,4]"),
    "dag_scan": (
        {
            "nodes": 3,
            "message": Graph.parse(SUM),
            "cell": Graph.parse(SUM),
            "edge_inputs": 0,
            "message_inputs": 0,
            "node_inputs": 0,
        },
        "edges:int64[2,4] order:int64[24]",
    ),
    "expand": ({"shape": (3, 2), "axes": (1,)}, "x[3]"),
    "reshape": ({"shape": (6,)}, "x[2,3]"),
    "permute": ({"perm": (1, 0)}, "x[2,3]"),
    "slice": ({"starts": (1,), "stops": (3,), "steps": (1,)}, "x[4]"),
    "slice_set": ({"starts": (1,), "stops": (3,), "steps": (1,)}, "x[4] value[2]"),
    "pad": ({"low": (1,), "high": (1,), "interior": (0,)}, "x[3] value[]"),
    "flip": ({"axes": (0,)}, "x[3]"),
    "concat": (AXIS, "a[3] b[2]"),
    "dot_general": ({"a_contract": (1,), "b_contract": (0,)}, "a[2,3] b[3,4]"),
    "conv": (
        {"strides": (1,), "low": (0,), "high": (0,), "x_dilation": (1,), "w_dilation": (1,)},
        "x[2,3,8] w[4,3,3]",
    ),
    "max_pool": (POOLING, "x[6]"),
    "max_pool_index": (POOLING, "x[6]"),
    "windows": ({"sizes": (2,), **WINDOWS}, "x[6]"),
    "fold": ({"shape": (6,), **WINDOWS}, "x[5,2]"),
    "triangular_solve": ({}, "a[3,3] b[3,2]"),
    "cholesky": ({}, "x[3,3]"),
    "lu": ({}, "x[3,3]"),
    "solve": ({}, "a[3,3] f[5,3] b[3,2]"),
    "inv": ({}, "a[3,3] f[5,3]"),
    "least_factors": ({}, "x[4,3] limit[1,1]"),
    "least_squares": ({}, "x[4,3] f[3,5] b[4,2]"),
    "det": ({}, "x[3,3] d[]"),
    "logabsdet": ({}, "x[3,3] d[]"),
    "cofactor": ({}, "x[3,3]"),
    "cofactor_slope": ({}, "x[3,3] t[3,3]"),
    "eig": ({}, "x[3,3]"),
    "eigvals": ({}, "x[3,3]"),
    "eigh": ({}, "x[3,3]"),
    "eigvalsh": ({}, "x[3,3]"),
    "expm": ({}, "x[3,3]"),
    "eigen_sum": ({}, "x[3,3] g[3] y[3,3]"),
    "singular_sum": ({}, "x[4,3] g[3] y[4,3]"),
    "turn": ({}, "w[3] m[3,3] z[3,3]"),
    "lyapunov": ({}, "h[3,3] c[3,3] y[3,3]"),
    "polar": ({}, "x[4,3] u[4,3]"),
    "nuclear_norm": ({}, "x[4,3] y[]"),
    "spectral_norm": ({}, "x[4,3] y[]"),
    "pinv": ({}, "x[4,3] p[3,4]"),
    "qr": ({}, "x[4,3]"),
    "complement": ({}, "q[4,3]"),
    "svd": ({}, "x[4,3]"),
    "svdvals": ({}, "x[4,3]"),
    "real": ({}, "z[3]"),
    "imag": ({}, "z[3]"),
    "complex": ({}, "x[3] y[3]"),
    "fft": (AXIS, "x[3]"),
    "random_bits": ({"shape": (3,)}, "key[2]"),
    "pure_callback": ({"label": "f", "shape": (3,), "dtype": DTYPE}, "x[3]"),
    "draw": ({"law": "normal", "shape": (3,)}, "key[2]"),
    "input": ({"dtype": DTYPE, "shape": (3,)}, ""),
    "constant": ({"value": DTYPE, "shape": (3,)}, ""),
    "iota": ({"shape": (3,), "axis": 0, "dtype": DTYPE}, ""),
    "size_of": ({"size": 3, "dtype": DTYPE}, ""),
    "stop_gradient": ({}, "x[3]"),
    "alias": ({}, "x[3]"),
    "region_in": ({}, "x[3]"),
    "region_out": ({}, "x[3]"),
    "keep": ({}, "x[3]"),
    "after": ({}, "x[3] others[2]:f64"),
    "assume": ({"left": 3, "relation": "!=", "right": 5, "why": "TEXT"}, "x[3]"),
}


Use = tuple[Op, dict[str, TensorType]]


def _holding(op: str, dtype: DType) -> Use:
    """An operation that holds graphs, which pass on what they get."""
    t, several = TensorType(dtype, (3,)), TensorType(dtype, (5, 3))
    x, y = input_node(t), input_node(t)
    passing, pair = Graph([x], [x]), Graph([x, y], [x, y])
    if op == "scan":
        attrs: dict[str, Any] = {"body": pair, "carries": 1, "scanned": 1, "length": 5}
        return lookup(op)(**attrs), {"carries": t, "xs": several}
    if op == "cond":
        condition = TensorType(bool_, ())
        return lookup(op)(passing, passing), {"condition": condition, "operands": t}
    if op == "custom":
        return lookup(op)("f", 1), {"x": t, "y": t}
    if op == "matrix_function":
        w, matrices = input_node(TensorType(dtype, ())), TensorType(dtype, (3, 3))
        return lookup(op)(Graph([w], [w])), {"x": matrices, "y": matrices}
    if op == "while_loop":
        test = Graph([x], [Constant(np.array(False), ())()])
        return lookup(op)(test, passing, 1), {"carries": t}
    if op == "sized":
        return lookup(op)(passing, "n"), {"size": TensorType(int64, ()), "operands": t}
    return lookup(op)(0), {"results": TupleType([t])}


HOLDERS: dict[str, Callable[[DType], Use]] = {
    op: functools.partial(_holding, op)
    for op in ("scan", "cond", "while_loop", "sized", "custom", "matrix_function", "item")
}


def with_own_dtype(op: str) -> list[str]:
    """The inputs whose dtype is not that of the others."""
    if op in HOLDERS:
        return []
    return re.findall(r"(\w+):", USES[op][1])


def use(op: str, dtype: DType, own: DType | None = None) -> Use:
    """The op as it is used here, and the types of its inputs, for a dtype to try, and another for
    the inputs that have their own."""
    if op in HOLDERS:
        return HOLDERS[op](dtype)
    if op not in USES:
        raise LookupError(f"USES in scripts/entries.py lacks {op!r}")
    attrs, listed = USES[op]
    made = dict(attrs)
    for key, value in attrs.items():
        if value is DTYPE:
            made[key] = np.zeros((), dtype.dtype) if key == "value" else dtype
    types = {}
    for name, fixed, shape in re.findall(r"(\w+)(?::(\w+))?\[([\d,]*)\]", listed):
        sizes = tuple(int(n) for n in shape.split(",") if n)
        types[name] = TensorType(own or as_dtype(fixed) if fixed else dtype, sizes)
    return lookup(op)(**made), types
