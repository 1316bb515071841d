"""Where retrograd differs from PyTorch on purpose, or has no counterpart, with the reason.

The test fails for an entry of the database that is neither compared nor listed here, and for a line
here that nothing needs any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_RANDOM = "draws random numbers; generators differ (tests/functions/random/test_continuous.py)"
_MEMORY = "is about PyTorch's strides and storage; arrays here have values"
_CASTS = "a conversion of dtypes: tests/functions/test_dtypes.py"
_INNER = "a private function of PyTorch's; the public one is compared"
_PROTOTYPE = "a prototype of PyTorch's without a counterpart"
_PLACES = "counts or positions, which have no gradient; not offered"
_WINDOW = "windows of signals are made by SciPy"
_CREATES = "makes an array without reading one: tests/functions/test_elementwise.py"
_EX = "the function without _ex raises LinAlgError instead of returning codes"

ABSENT: dict[str, str] = {
    r"item|allclose": "compares or converts numbers: NumPy's functions take tensors",
    r"cauchy|exponential|geometric|log_normal|normal.*|uniform|randn.*|rand_like": _RANDOM,
    r"randint.*|multinomial|bernoulli|native_dropout_backward": _RANDOM,
    r"nn\.functional\.(alpha_|feature_alpha_)?dropout.*": _RANDOM,
    r"nn\.functional\.(rrelu|fractional_max_pool\dd)": _RANDOM,
    r"as_strided.*|new_empty.*|empty.*|resize_.*|zero_|fill|to_sparse": _MEMORY,
    r"bfloat16|float|half|cfloat": _CASTS + "; forward mode in single precision",
    r"chalf": _CASTS,
    r"tri[ul]_indices|logspace.*": _CREATES,
    r"native_(group|layer|batch)_norm|_native_batch_norm_legit|_batch_norm_with_update": _INNER,
    r"max_pool2d_with_indices_backward|_chunk_cat|_upsample_bilinear2d_aa": _INNER,
    r"_unsafe_masked_index.*|hash_tensor": _INNER,
    r"torch\.(ops\.aten\._(flash|efficient)_.*|_scaled_mm.*)|jiterator_.*|bmm triton_.*": _INNER,
    r"torch\.ops\.aten\._safe_softmax\.default|_softmax_backward_data": _INNER,
    r"_segment_reduce .*": _INNER + "; rg.segment_sum and its kin: tests/functions",
    r"(sparse|masked)\..*": _PROTOTYPE + "; rg.where and reductions say the same",
    r"special\.(airy_ai|spherical_bessel_j0|(shifted_)?(chebyshev|hermite|l).*polynomial.*)": (
        _PROTOTYPE),
    r"unique.*|frexp|unravel_index|histogramdd": _PLACES,
    r"histc|nonzero_static|broadcast_shapes": _PLACES,
    r"corrcoef|stft|istft|gradient|nanmedian|nanquantile|ldexp": (
        "no counterpart, or NumPy's arguments"),
    r"cdist": "nn.functional.cdist takes p by name: compared in tests/nn",
    r"geqrf|ormqr|linalg\.householder_product|lu|lu_unpack|lu_solve|linalg\.lu_(factor|solve)": (
        "packed factors of LAPACK: linalg.lu, qr and solve have what they are made for"),
    r"linalg\.ldl_.*|linalg\.lu_factor_ex": _EX,
    r"svd|svd_lowrank|pca_lowrank": "linalg.qr and linalg.svd are compared",
    r"fft\.i?hfft[2n]": "no counterpart yet",
    r"signal\..*": _WINDOW,
    r"nn\.functional\.batch_norm without_cudnn": "an entry for graphics cards",
    r"nn\.functional\.silu complex": "silu of complex numbers is compared as an expression",
}  # fmt: skip

# Samples that are left out: (entries, what in the text of the call, reason).
SAMPLES: list[tuple[str, str, str]] = [
    (r".*", r"\((float|complex)\d+\[\](, \w+\[\d*\])*; .*(dim=|\(-?[01]\b|\(\[?0|, -?[01][,)])",
     "an array without axes has no axis 0: the standard's rule, an error here"),
    (r".*", r"dropout_p=0\.[1-9]", _RANDOM),
    (r"nn\.functional\.multi_head_attention_forward", r", 0\.5, ", _RANDOM),
    (r"mode", r"\[\];", "an array without axes has no axis -1"),
    (r"cov", r"float32", "PyTorch keeps weights in float32; mixed arrays are float64 here"),
    (r"median", r".*", "the mean of the two in the middle, as NumPy's; PyTorch takes the lower"),
    (r"argwhere|nonzero", r"\(\w+\[\];", "an array without axes has no positions: the standard"),
    (r"nn\.functional\.embedding(_bag)?", r"max_norm", "needs a Parameter: tests/nn"),
    (r"nn\.functional\.hinge_embedding_loss", r".*", "targets of OpInfo other than 1 and -1"),
    (r"nn\.functional\.(multi_margin|multilabel_margin)_loss", r"\[\];|int64\[1\]",
     "scores without a class axis, which PyTorch takes for one class"),
    (r"nn\.functional\.batch_norm", r"\(float64\[0\], ", "needs [N, C, ...]: a clear error"),
    (r"linalg\.vander", r"\[\];", "a vector is needed, as the standard says"),
    (r"linalg\.solve(_ex)?", r"\[(.+), (\d+), \2\], \w+\[\1, \2\];",
     "a right side is a vector if it has one axis: the standard's rule"),
    (r"linalg\.matrix_rank", r"atol=_Leaf", "the standard's rtol only"),
    (r"linalg\.tensorsolve", r"dims=\(", "axes that do not leave the right side's shape in front"),
    (r"histogram", r"float64\[\]|, \(", "edges as tensors of several axes: histogramdd"),
    (r"tensordot", r"\w+\[1, 1, 1\]", "contracted axes of sizes 1 and 2: an error here"),
    (r"special\.bessel_.*", r".*",
     "PyTorch's Bessel functions are off by 1e-7 in float64: SciPy and mpmath in tests/ops"),
]  # fmt: skip


def absent(entry: str) -> str | None:
    return next((why for names, why in ABSENT.items() if re.fullmatch(names, entry)), None)


def left_out(entry: str, text: str) -> str | None:
    for names, what, why in SAMPLES:
        if re.fullmatch(names, entry) and re.search(what, text):
            return why
    return None


def _up_to_phases(results: Any) -> Any:
    return [abs(x) for x in results]


def _first(results: Any) -> Any:
    return results[0] if isinstance(results, tuple) else results


# Positions beside the values, or codes of errors: those that this library gives are compared in
# tests/functions, as ties may be decided otherwise.
_WITH_POSITIONS = (
    "max reduction_with_dim", "min reduction_with_dim", "cummax", "cummin", "kthvalue", "sort",
    "topk", "nn.functional.adaptive_max_pool1d", "nn.functional.adaptive_max_pool2d",
    "nn.functional.adaptive_max_pool3d", "linalg.cholesky_ex", "linalg.inv_ex", "linalg.solve_ex",
)  # fmt: skip

# What is compared of entries whose results are known up to a choice.
OBSERVED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_WITH_POSITIONS, _first),
    "linalg.eigh": _up_to_phases,
    "linalg.svd": _up_to_phases,
    "linalg.eig": lambda results: abs(results[0]).sum(),
    "linalg.eigvals": lambda results: abs(results).sum(),
    "linalg.lstsq": lambda results: results[0] if isinstance(results, tuple) else results,
    "linalg.lstsq grad_oriented": lambda r: r[0] if isinstance(r, tuple) else r,
}

# Results whose size depends on values: programs that are traced have none such.
EAGER_ONLY: dict[str, str] = dict.fromkeys(
    ("masked_select", "nonzero", "argwhere", "linalg.matrix_rank"), "a size that depends on values"
)

# PyTorch has a gradient, and retrograd has another one on purpose.
NO_GRADIENT: dict[str, str] = {
    "cholesky_inverse": "PyTorch gives elements of the factor that are not read a gradient",
    "cholesky_solve": "PyTorch gives elements of the factor that are not read a gradient",
    "nn.functional.ctc_loss": "PyTorch's gradient is right behind log_softmax only: tests/nn",
    **dict.fromkeys(
        [f"nn.functional.max_unpool{n}d{kind}" for n in (1, 2, 3) for kind in ("", " grad")],
        "of several elements for one place the last one counts; PyTorch gives all the gradient",
    ),
    "nn.functional.hardsigmoid": "PyTorch's slope is 1/6 rounded to float32",
}
NO_SECOND: dict[str, str] = {
    "nn.functional.scaled_dot_product_attention": "PyTorch's kernel has no second derivative",
    "linalg.norm subgradients_at_zero": "all derivatives of a norm at zero are 0; PyTorch has NaN",
}

# Functions of real numbers here, which refuse complex ones by a clear error.
REAL: dict[str, str] = dict.fromkeys(
    (
        "logaddexp", "softmax with_dtype", "log_softmax with_dtype", "sinc", "rsqrt", "sigmoid",
        "logcumsumexp", "logsumexp", "nn.functional.softmin with_dtype", "nn.functional.normalize",
        "nn.functional.rms_norm", "nn.functional.softsign", "nn.functional.tanhshrink",
        "nn.functional.triplet_margin_loss", "nn.functional.triplet_margin_with_distance_loss",
        "nn.functional.l1_loss", "nn.functional.pairwise_distance",
    ),
    "not offered for complex numbers",
)  # fmt: skip
