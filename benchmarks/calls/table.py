"""One call of every public function of arrays, on small arrays.

`calls(Arrays(n))` has them by name. What is public and not here is in `OTHER`: what makes no array,
or needs a function of the user's; a test holds both against the namespaces, so that nothing that is
new stays out. A call may give several arrays; `compute` looks at all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import retrograd as rg
from benchmarks.calls.arrays import Arrays, Call
from benchmarks.calls.draws import draws
from benchmarks.calls.functional import functional
from benchmarks.calls.numpy_api import numpy_functions, special_functions
from benchmarks.calls.pytorch import pytorch_functions
from retrograd.nn import functional as F

SPACES = {
    "rg": rg,
    "rg.linalg": rg.linalg,
    "rg.fft": rg.fft,
    "rg.special": rg.special,
    "rg.nn.functional": F,
}
# Public names that are no functions of arrays.
_OTHER = """
    __array_namespace_info__ Dim Graph GraphBuilder Tape Tensor Value backend backends cache_stats
    can_cast checkpoint compare compile cond custom_jvp custom_vjp dashboard debug finfo fixed_point
    flush_subnormals fori_loop grad gradcheck hessian hvp iinfo isdtype jacfwd jacobian jacrev jit
    info jvp linearize load load_graph load_onnx minimize no_grad num_threads numerical_gradient
    odeint profile
    nn.functional.rotary_frequencies
    result_type root save scan spec trace value_and_grad vjp vmap while_loop from_dlpack
    random.Generator.jump random.Generator.load_state_dict random.Generator.split
    random.Generator.state_dict
    enable_grad from_jax from_torch get_default_dtype get_num_threads get_rng_state inference_mode
    initial_seed is_complex is_floating_point is_grad_enabled is_nonzero is_same_size is_signed
    is_tensor manual_seed numel promote_types pure_callback seed set_default_dtype set_grad_enabled
    set_num_threads set_rng_state to_jax to_torch
    """
OTHER = frozenset([f"rg.{name}" for name in _OTHER.split()])

POSITIVE = """
abs acos asin atan atanh cbrt ceil cos cosh cumulative_prod cumulative_sum cummax cummin cumprod
cumsum diff elu erf erfc exp exp2 expm1 floor gelu isfinite isinf isnan leaky_relu log log10 log1p
log2 log_sigmoid negative positive real reciprocal relu round rsqrt sigmoid sign signbit silu sin
sinh softplus sqrt square stop_gradient tan tanh trunc asinh all any argmax argmin count_nonzero
logsumexp max mean min prod std sum var flip ones_like zeros_like empty_like median conj argsort
sort matrix_transpose tril triu argwhere nonzero diag diagonal unique_all unique_counts
unique_inverse unique_values unstack vector_norm broadcast_arrays angle imag
"""
PAIRS = """
add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder
subtract kron isin vecdot
"""
WHOLE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
SQUARE = """
cond det diag diagonal eig eigvals expm inv lu lu_factor matrix_norm matrix_rank norm
matrix_transpose pinv qr slogdet svd svdvals trace vector_norm
"""
SYMMETRIC = """
absmh cholesky eigh eigvalsh expmh invsqrtmh logmh matrix_sqrth signmh sqrtmh
"""
SPECIAL_ONE = """
digamma gamma gammaln gammasgn psi erf erfc erfcinv erfcx erfinv log_ndtr ndtr ndtri
bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e modified_bessel_i0
modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0
scaled_modified_bessel_k1 y0 y1 cbrt entr exp2 expit expm1 log1p log_expit logit logsumexp sinc
"""
SPECIAL_TWO = "beta betaln gammainc gammaincc kl_div logaddexp rel_entr xlog1py xlogy"


def compute(result: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a result, computed."""
    parts = rg.tree.flatten(result)[0]
    return [np.asarray(x.numpy() if isinstance(x, rg.Tensor) else x) for x in parts]


def differentiate(a: Arrays, result: Any) -> list[np.ndarray[Any, Any]]:
    """The gradients of the sum of the squares of a result by all arrays that want one."""
    parts = [y for y in rg.tree.flatten(result)[0] if isinstance(y, rg.Tensor) and y.requires_grad]
    if not parts:
        return []
    sum([(rg.real(y) * rg.real(y)).sum() for y in parts], rg.tensor(0.0)).backward()
    return a.gradients()


def listed() -> list[str]:
    """The full names of all public functions and drawing methods that make arrays."""
    found = [
        f"{space}.{name}"
        for space, module in SPACES.items()
        for name in module.__all__
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
    ]
    own = vars(rg.random.Generator) | vars(rg.random.Distributions)
    found += [f"rg.random.Generator.{name}" for name in own if not name.startswith("_")]
    return [name for name in found if name not in OTHER]


def calls(a: Arrays) -> dict[str, Call]:
    """A call of each function by its full name."""
    made: dict[str, Call] = {}
    for prefix, part in (
        ("rg", _general(a)),
        ("rg", _moving(a)),
        ("rg", numpy_functions(a)),
        ("rg", pytorch_functions(a)),
        ("rg.linalg", _linalg(a)),
        ("rg.fft", _fft(a)),
        ("rg.special", _special(a)),
        ("rg.special", special_functions(a)),
        ("rg.nn.functional", functional(a)),
        ("rg.random.Generator", draws(a)),
    ):
        made |= {f"{prefix}.{name}": call for name, call in part.items()}
    return made


def _general(a: Arrays) -> dict[str, Call]:
    x, y, i, z = a.x, a.y, a.i, a.z
    made: dict[str, Call] = {name: partial(getattr(rg, name), x) for name in POSITIVE.split()}
    made |= {name: partial(getattr(rg, name), x, y) for name in PAIRS.split()}
    made |= {name: partial(getattr(rg, name), i, i) for name in WHOLE.split()}
    made |= {name: partial(getattr(rg, name), x, axis=-1) for name in ("softmax", "log_softmax")}
    made |= {name: partial(getattr(rg, name), z) for name in ("angle", "imag", "real", "conj")}
    made |= {name: partial(getattr(rg, name), x, axis=0) for name in
             ("cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "cummax", "cummin",
              "logcumsumexp")}  # fmt: skip
    return made | {
        "acosh": lambda: rg.acosh(x + 1.5),
        "astype": lambda: rg.astype(x, rg.float64),
        "bitwise_invert": lambda: rg.bitwise_invert(i),
        "clip": lambda: rg.clip(x, 0.3, 0.6),
        "complex": lambda: rg.complex(x, y),
        "logical_not": lambda: rg.logical_not(a.mask),
        "where": lambda: rg.where(a.mask, x, y),
        "layer_norm": lambda: rg.layer_norm(x, a.row, a.row),
        "rms_norm": lambda: rg.rms_norm(x, a.row),
        "bincount": lambda: rg.bincount(a.rows, length=a.n),
        "histogram": lambda: rg.histogram(x, 4),
        "percentile": lambda: rg.percentile(x, 30.0),
        "quantile": lambda: rg.quantile(x, 0.3),
        "digitize": lambda: rg.digitize(x, rg.sort(a.row)),
        "searchsorted": lambda: rg.searchsorted(rg.sort(a.row), x),
        "topk": lambda: rg.topk(x, 2),
        "cross": lambda: rg.cross(x[:, :3], y[:, :3]),
        "einsum": lambda: rg.einsum("ij,kj->ik", x, y),
        "matmul": lambda: rg.matmul(x, y.T),
        "meshgrid": lambda: rg.meshgrid(a.row, a.row),
        "outer": lambda: rg.outer(a.row, a.row),
        "tensordot": lambda: rg.tensordot(x, y, axes=((0,), (0,))),
        "conv": lambda: rg.conv(a.image, a.uniform(4, 3, 3, 3), stride=2, padding=1),
        "conv_transpose": lambda: rg.conv_transpose(a.image, a.uniform(3, 4, 3, 3), stride=2),
        "avg_pool": lambda: rg.avg_pool(a.image, 3),
        "max_pool": lambda: rg.max_pool(a.image, 3),
    }


def _moving(a: Arrays) -> dict[str, Call]:
    x, y, n = a.x, a.y, a.n
    made: dict[str, Call] = {}
    for name in ("sum", "mean", "max", "min", "prod", "softmax"):
        made[f"segment_{name}"] = partial(
            getattr(rg, f"segment_{name}"), rg.concat([x, y[:1]]), a.rows, n
        )
    for name in ("add", "max", "min", "mul", "set"):
        made[f"scatter_{name}"] = partial(
            getattr(rg, f"scatter_{name}"), x, a.rows, rg.concat([x, y[:1]])
        )
    return made | {
        "arange": lambda: rg.arange(n),
        "array": lambda: rg.array(np.ones(n)) + 1,
        "asarray": lambda: rg.asarray(np.ones(n)) + 1,
        "broadcast_shapes": lambda: rg.broadcast_shapes((n, 1), (n + 2,)),
        "broadcast_to": lambda: rg.broadcast_to(a.row, (n, n + 2)),
        "concat": lambda: rg.concat([x, y]),
        "empty": lambda: rg.empty((n, 2)),
        "expand_dims": lambda: rg.expand_dims(x, axis=1),
        "eye": lambda: rg.eye(n),
        "full": lambda: rg.full((n, 2), 3.0),
        "full_like": lambda: rg.full_like(x, 3.0),
        "linspace": lambda: rg.linspace(0.0, 1.0, n),
        "moveaxis": lambda: rg.moveaxis(a.image, 1, 2),
        "one_hot": lambda: rg.one_hot(a.rows, n),
        "ones": lambda: rg.ones((n, 2)),
        "pad": lambda: rg.pad(x, ((1, 2), (0, 1))),
        "permute_dims": lambda: rg.permute_dims(a.image, (0, 2, 3, 1)),
        "put_along_axis": lambda: rg.put_along_axis(x, a.i[:, :2], y[:, :2], axis=1),
        "repeat": lambda: rg.repeat(x, 2, axis=0),
        "reshape": lambda: rg.reshape(x, (-1,)),
        "roll": lambda: rg.roll(x, 1, axis=0),
        "split": lambda: rg.split(x, [1, n + 1], axis=1),
        "squeeze": lambda: rg.squeeze(x[:1], axis=0),
        "stack": lambda: rg.stack([x, y]),
        "swapaxes": lambda: rg.swapaxes(x, 0, 1),
        "take": lambda: rg.take(x, a.rows, axis=0),
        "take_along_axis": lambda: rg.take_along_axis(x, a.i, axis=1),
        "tensor": lambda: rg.tensor(np.ones(n)) + 1,
        "tile": lambda: rg.tile(x, (2, 1)),
        "zeros": lambda: rg.zeros((n, 2)),
    }


def _linalg(a: Arrays) -> dict[str, Call]:
    m, spd, x, y = a.m, a.spd, a.x, a.y
    la = rg.linalg
    made: dict[str, Call] = {name: partial(getattr(la, name), m) for name in SQUARE.split()}
    made |= {name: partial(getattr(la, name), spd) for name in SYMMETRIC.split()}
    return made | {
        "block_diag": lambda: la.block_diag(m, x),
        "cho_solve": lambda: la.cho_solve((spd, True), x),
        "cross": lambda: la.cross(x[:, :3], y[:, :3]),
        "funmh": lambda: la.funmh(spd, rg.tanh),
        "kron": lambda: la.kron(m, x),
        "lstsq": lambda: la.lstsq(x.T, y.T)[0],
        "lu_solve": lambda: la.lu_solve(la.lu_factor(m), x),
        "matmul": lambda: la.matmul(m, x),
        "matrix_power": lambda: la.matrix_power(m, 3),
        "multi_dot": lambda: la.multi_dot([m, m, x]),
        "matrix_exp": lambda: la.matrix_exp(m),
        "outer": lambda: la.outer(a.row, a.row),
        "polar": lambda: la.polar(m)[0],
        "powmh": lambda: la.powmh(spd, 0.5),
        "solve": lambda: la.solve(m, x),
        "solve_triangular": lambda: la.solve_triangular(spd, x, lower=True),
        "tensordot": lambda: la.tensordot(m, x, axes=1),
        "tensorinv": lambda: la.tensorinv(rg.expand_dims(m, axis=0), ind=2),
        "tensorsolve": lambda: la.tensorsolve(m, a.row[: a.n]),
        "vander": lambda: la.vander(a.row),
        "vecdot": lambda: la.vecdot(x, y),
    }


def _fft(a: Arrays) -> dict[str, Call]:
    fft, x, z = rg.fft, a.x, a.z
    made: dict[str, Call] = {}
    for name in (
        "fft",
        "fftn",
        "ifft",
        "ifftn",
        "irfft",
        "irfftn",
        "hfft",
        "fft2",
        "ifft2",
        "irfft2",
    ):
        made[name] = partial(getattr(fft, name), z)
    for name in ("rfft", "rfftn", "ihfft", "rfft2", "fftshift", "ifftshift"):
        made[name] = partial(getattr(fft, name), x)
    return made | {"fftfreq": lambda: fft.fftfreq(a.n), "rfftfreq": lambda: fft.rfftfreq(a.n)}


def _special(a: Arrays) -> dict[str, Call]:
    sp, x, y = rg.special, a.x, a.y
    made: dict[str, Call] = {name: partial(getattr(sp, name), x) for name in SPECIAL_ONE.split()}
    made |= {name: partial(getattr(sp, name), x, y) for name in SPECIAL_TWO.split()}
    return made | {
        "betainc": lambda: sp.betainc(x, y, 0.4),
        "betaincc": lambda: sp.betaincc(x, y, 0.4),
        "log_softmax": lambda: sp.log_softmax(x, axis=-1),
        "multigammaln": lambda: sp.multigammaln(x + 3, 2),
        "polygamma": lambda: sp.polygamma(2, x),
        "softmax": lambda: sp.softmax(x, axis=-1),
        "zeta": lambda: sp.zeta(x + 1.5, y),
    }
