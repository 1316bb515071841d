"""A plain word for every operation, for those who know mathematics and not the names in here."""

from __future__ import annotations

# By the name of the operation. What is one already, such as "cosh", stands here too.
WORDS: dict[str, str] = {
    # leaves
    "input": "input", "constant": "constant", "iota": "0, 1, 2, …", "size_of": "size",
    "draw": "random numbers", "random_bits": "random bits", "sized": "checked size",
    # arithmetic
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negate",
    "zmul": "multiply", "zdiv": "divide", "zzmul": "multiply", "pow": "power",
    "reciprocal": "reciprocal", "sqrt": "square root", "rsqrt": "1 / square root",
    "cbrt": "cube root", "hypot": "hypotenuse", "abs": "absolute value", "sign": "sign",
    "copysign": "with the sign of", "signbit": "is negative", "floor": "rounded down",
    "ceil": "rounded up", "round": "rounded", "trunc": "whole part", "mod": "remainder",
    "floor_div": "whole quotient", "max": "larger of two", "min": "smaller of two",
    "clamp": "kept between", "nextafter": "next number",
    # exponentials and logarithms
    "exp": "exponential", "exp2": "power of 2", "expm1": "exponential minus 1",
    "log": "natural logarithm", "log2": "logarithm to base 2", "log10": "logarithm to base 10",
    "log1p": "logarithm of 1 + x", "logaddexp": "logarithm of a sum of exponentials",
    "logsumexp": "logarithm of a sum of exponentials", "logit": "log-odds",
    "logcumsumexp": "logarithm of running sums of exponentials", "sigmoid": "logistic function",
    "softplus": "softplus: log(1 + exp(x))", "relu": "positive part (ReLU)",
    "xlogy": "x times logarithm of y", "xlog1py": "x times logarithm of 1 + y",
    "entr": "entropy: −x log(x)", "rel_entr": "relative entropy: x log(x / y)",
    "portable_exp": "exponential", "portable_log": "natural logarithm",
    "portable_atan": "arc tangent", "portable_log_factorial": "logarithm of a factorial",
    # trigonometry
    "sin": "sine", "cos": "cosine", "tan": "tangent", "asin": "arc sine", "acos": "arc cosine",
    "atan": "arc tangent", "atan2": "angle of a point", "sinh": "hyperbolic sine",
    "cosh": "hyperbolic cosine", "tanh": "hyperbolic tangent", "asinh": "inverse hyperbolic sine",
    "acosh": "inverse hyperbolic cosine", "atanh": "inverse hyperbolic tangent",
    "sech2": "1 / cosh²",
    # comparisons, logic, bits
    "eq": "is equal", "ne": "is not equal", "lt": "is less", "le": "is at most", "gt": "is greater",
    "ge": "is at least", "select": "choose", "isnan": "is not a number",
    "isinf": "is infinite", "isfinite": "is finite", "bitwise_and": "and", "bitwise_or": "or",
    "bitwise_xor": "either, not both", "bitwise_not": "not", "shift_left": "bits moved left",
    "shift_right": "bits moved right",
    # complex numbers
    "real": "real part", "imag": "imaginary part", "complex": "complex number of two parts",
    # reductions and scans
    "reduce_sum": "sum", "reduce_prod": "product", "reduce_max": "largest",
    "reduce_min": "smallest", "reduce_all": "all true", "reduce_any": "any true",
    "argmax": "place of the largest", "argmin": "place of the smallest", "cumsum": "running sum",
    "cumprod": "running product", "cummax": "largest so far", "cummin": "smallest so far",
    "cumargmax": "place of the largest so far", "cumargmin": "place of the smallest so far",
    "linear_scan": "recurrence: h = a h + b",
    # shapes
    "cast": "convert", "expand": "repeat", "reshape": "reshape",
    "permute": "transpose", "concat": "join", "slice": "part",
    "slice_set": "replace part", "pad": "pad", "flip": "reverse", "windows": "sliding windows",
    "fold": "sum of sliding windows",
    # indexing and sorting
    "gather": "look up rows", "ravel_index": "place in row-major order",
    "scatter_add": "add to rows", "scatter_set": "set rows",
    "scatter_max": "largest of rows", "scatter_min": "smallest of rows",
    "scatter_mul": "multiply rows", "sort": "sort", "argsort": "order when sorted",
    "searchsorted": "place in a sorted list",
    # products, convolutions, linear algebra
    "dot_general": "matrix product", "conv": "convolution", "max_pool": "largest of window",
    "max_pool_index": "place in window", "inv": "inverse matrix",
    "pinv": "pseudo-inverse", "det": "determinant", "cofactor": "cofactors",
    "cofactor_slope": "slope of cofactors", "logabsdet": "logarithm of the determinant",
    "solve": "solution of linear equations", "triangular_solve": "solution, triangular matrix",
    "least_squares": "least squares", "least_factors": "factors for least squares",
    "cholesky": "Cholesky factor", "lu": "LU factors", "qr": "QR factors",
    "eig": "eigenvalues and vectors", "eigh": "eigenvalues and vectors, symmetric",
    "eigvals": "eigenvalues", "eigvalsh": "eigenvalues, symmetric",
    "eigen_sum": "weighted eigenvectors", "svd": "singular values and vectors",
    "svdvals": "singular values", "singular_sum": "weighted singular vectors",
    "nuclear_norm": "nuclear norm", "spectral_norm": "spectral norm", "expm": "matrix exponential",
    "matrix_function": "function of a matrix", "lyapunov": "Lyapunov equation",
    "complement": "orthogonal complement", "polar": "unitary factor (polar decomposition)",
    "turn": "rotation within groups of equal values", "fft": "Fourier transform",
    # special functions
    "erf": "error function", "erfc": "1 minus error function", "erfcx": "scaled 1 minus erf",
    "erfinv": "inverse error function", "erfcinv": "inverse of 1 minus erf",
    "ndtr": "normal distribution function", "ndtri": "normal quantile", "gamma": "gamma function",
    "lgamma": "logarithm of the gamma function", "digamma": "digamma function",
    "trigamma": "trigamma function", "zeta": "zeta function", "betaln": "logarithm of beta",
    "spence": "dilogarithm", "i0e": "scaled Bessel function I₀", "i1e": "scaled Bessel function I₁",
    "k0e": "scaled Bessel function K₀", "k1e": "scaled Bessel function K₁",
    "j0": "Bessel function J₀", "j1": "Bessel function J₁", "y0": "Bessel function Y₀",
    "y1": "Bessel function Y₁", "yn": "Bessel function Yₙ", "bessel_j": "Bessel function Jₙ",
    "bessel_ie": "scaled Bessel function Iₙ", "ellipe": "elliptic integral E",
    "ellipkm1": "elliptic integral K", "exp1": "exponential integral E₁",
    "expi": "exponential integral Ei", "expn": "exponential integral Eₙ",
    "lpmv": "Legendre function", "hyp1f1": "hypergeometric function ₁F₁",
    "hyp1f1_da": "slope of ₁F₁ by a", "hyp1f1_db": "slope of ₁F₁ by b",
    "hyp2f1": "hypergeometric function ₂F₁", "hyp2f1_da": "slope of ₂F₁ by a",
    "hyp2f1_dc": "slope of ₂F₁ by c", "betainc": "incomplete beta function",
    "betaincinv": "inverse incomplete beta", "betainccinv": "inverse upper incomplete beta",
    "betainc_da": "slope of incomplete beta by a", "betainc_db": "slope of incomplete beta by b",
    "betainc_dx": "slope of incomplete beta by x", "betainc_daa": "curvature of incomplete beta",
    "betainc_dab": "curvature of incomplete beta", "betainc_dbb": "curvature of incomplete beta",
    "gammainc": "lower incomplete gamma", "gammaincc": "upper incomplete gamma",
    "gammaincinv": "inverse incomplete gamma", "gammainccinv": "inverse upper incomplete gamma",
    "gammainc_da": "slope of incomplete gamma by a",
    "gammainc_dx": "slope of incomplete gamma by x",
    "gammainc_daa": "curvature of incomplete gamma",
    "implicit_beta": "sample of a beta distribution",
    "implicit_exp": "sample of an exponential distribution",
    "implicit_gamma": "sample of a gamma distribution",
    "implicit_log_gamma": "logarithm of a gamma sample",
    "implicit_von_mises": "sample of a von Mises distribution",
    "von_mises_slope": "slope of a von Mises sample",
    # control
    "alias": "the same value", "stop_gradient": "stop gradient", "keep": "kept value",
    "after": "in this order", "assume": "assumed", "item": "one of several results",
    "scan": "loop", "while_loop": "loop while", "cond": "one of two ways",
    "dag_scan": "loop over a graph", "dag_order": "order of a graph", "custom": "own function",
    "pure_callback": "Python function", "region_in": "into a region",
    "region_out": "out of a region",
}  # fmt: skip


def word(op: str) -> str:
    """The plain word for an operation; for one that somebody has added, its name.

    >>> word("dot_general")
    'matrix product'
    """
    return WORDS.get(op, op.replace("_", " "))
