"""Formulas of functions, layers and optimizers, by the name that users know them under.

`x` is the first argument, `y` the result, others have the names of the arguments. A layer that is
not here has the formula of the function that it calls, if that makes up all of it.
"""

from __future__ import annotations

import re

_MEAN = "μ = (1 / n) Σ_i x_i"
_VARIANCE = "σ^2 = (1 / n) Σ_i (x_i − μ)^2"
_NORMALIZED = "y = γ · (x − μ) / sqrt(σ^2 + ε) + β"

# Several formulas stand one below the other.
FORMULAS: dict[str, str] = {
    # losses
    "cross_entropy": (
        "L = −(1 / N) Σ_n log(p_(n, t_n))\np_(n, k) = exp(x_(n, k)) / Σ_j exp(x_(n, j))"
    ),
    "linear_cross_entropy": "L = −(1 / N) Σ_n log(softmax(W · x_n)_(t_n))",
    "nll_loss": "L = −(1 / N) Σ_n x_(n, t_n)",
    "mse_loss": "L = (1 / N) Σ_n (x_n − t_n)^2",
    "l1_loss": "L = (1 / N) Σ_n |x_n − t_n|",
    "smooth_l1_loss": "l = d^2 / (2 β) if |d| < β, else |d| − β / 2\nd = x − t",
    "huber_loss": "l = d^2 / 2 if |d| <= δ, else δ (|d| − δ / 2)\nd = x − t",
    "kl_div": "l = t (log(t) − x)",
    "binary_cross_entropy": "L = −(1 / N) Σ_n (t_n log(p_n) + (1 − t_n) log(1 − p_n))",
    "binary_cross_entropy_with_logits": (
        "L = −(1 / N) Σ_n (t_n log(p_n) + (1 − t_n) log(1 − p_n))\np = 1 / (1 + exp(−x))"
    ),
    "hinge_loss": "l = max(0, 1 − t x)",
    "squared_hinge_loss": "l = max(0, 1 − t x)^2",
    "hinge_embedding_loss": "l = x if t = 1, else max(0, m − x)",
    "soft_margin_loss": "l = log(1 + exp(−t x))",
    "margin_ranking_loss": "l = max(0, −t (x_1 − x_2) + m)",
    "multi_margin_loss": "l = (1 / K) Σ_(k ≠ t) max(0, m − x_t + x_k)",
    "triplet_margin_loss": "l = max(0, ‖a − p‖ − ‖a − n‖ + m)",
    "triplet_margin_with_distance_loss": "l = max(0, d(a, p) − d(a, n) + m)",
    "cosine_embedding_loss": "l = 1 − cos(a, b) if t = 1, else max(0, cos(a, b) − m)",
    "gaussian_nll_loss": "l = (log(v) + (x − t)^2 / v) / 2",
    "poisson_nll_loss": "l = exp(x) − t x",
    "focal_loss": "l = −(1 − p_t)^γ log(p_t)",
    "sigmoid_focal_loss": "l = −α (1 − p)^γ log(p)",
    "dice_loss": "L = 1 − 2 Σ_i p_i t_i / (Σ_i p_i + Σ_i t_i)",
    "tversky_loss": "L = 1 − TP / (TP + α FP + β FN)",
    "distillation_loss": "L = T^2 KL(softmax(t / T), softmax(x / T))",
    "ctc_loss": "L = −log(Σ_π Π_t p_(t, π_t))",
    "multilabel_margin_loss": "l = (1 / K) Σ_j Σ_(i ∉ t) max(0, 1 − x_(t_j) + x_i)",
    "multilabel_soft_margin_loss": (
        "l = −(1 / K) Σ_k (t_k log(σ(x_k)) + (1 − t_k) log(σ(−x_k)))"
    ),
    # activations
    "softmax": "y_i = exp(x_i) / Σ_j exp(x_j)",
    "softmin": "y_i = exp(−x_i) / Σ_j exp(−x_j)",
    "log_softmax": "y_i = x_i − log(Σ_j exp(x_j))",
    "gumbel_softmax": "y = softmax((x + g) / τ)",
    "relu": "y = max(0, x)",
    "relu6": "y = min(max(0, x), 6)",
    "leaky_relu": "y = x if x >= 0, else a x",
    "rrelu": "y = x if x >= 0, else a x",
    "prelu": "y = x if x >= 0, else a x",
    "elu": "y = x if x > 0, else α (exp(x) − 1)",
    "celu": "y = max(0, x) + min(0, α (exp(x / α) − 1))",
    "selu": "y = λ x if x > 0, else λ α (exp(x) − 1)",
    "gelu": "y = x · Φ(x)",
    "silu": "y = x / (1 + exp(−x))",
    "mish": "y = x · tanh(log(1 + exp(x)))",
    "glu": "y = a · σ(b)",
    "geglu": "y = a · gelu(b)",
    "reglu": "y = a · relu(b)",
    "swiglu": "y = a · silu(b)",
    "sigmoid": "y = 1 / (1 + exp(−x))",
    "logsigmoid": "y = −log(1 + exp(−x))",
    "hardsigmoid": "y = min(max(0, x / 6 + 1 / 2), 1)",
    "hardswish": "y = x · min(max(0, x / 6 + 1 / 2), 1)",
    "hardtanh": "y = min(max(a, x), b)",
    "hardshrink": "y = x if |x| > λ, else 0",
    "softshrink": "y = sign(x) · max(0, |x| − λ)",
    "softplus": "y = log(1 + exp(β x)) / β",
    "softsign": "y = x / (1 + |x|)",
    "tanh": "y = (exp(x) − exp(−x)) / (exp(x) + exp(−x))",
    "tanhshrink": "y = x − tanh(x)",
    "threshold": "y = x if x > a, else b",
    # layers
    "linear": "y = x · W^T + b",
    "bilinear": "y_k = x_1^T · W_k · x_2 + b_k",
    "embedding": "y_n = W_(x_n)",
    "embedding_bag": "y = Σ_n W_(x_n)",
    "one_hot": "y_(n, k) = 1 if k = x_n, else 0",
    "dropout": "y = 0 if u < p, else x / (1 − p)",
    "layer_norm": f"{_NORMALIZED}\n{_MEAN}, {_VARIANCE}",
    "batch_norm": f"{_NORMALIZED}\nμ = mean(x), σ^2 = var(x)",
    "group_norm": f"{_NORMALIZED}\nμ = mean(x), σ^2 = var(x)",
    "instance_norm": f"{_NORMALIZED}\nμ = mean(x), σ^2 = var(x)",
    "rms_norm": "y = γ · x / sqrt((1 / n) Σ_i x_i^2 + ε)",
    "local_response_norm": "y_c = x_c / (k + (α / n) Σ_j x_j^2)^β",
    "normalize": "y = x / max(‖x‖, ε)",
    "scaled_dot_product_attention": "Y = softmax(Q · K^T / sqrt(d)) · V",
    "multi_head_attention": (
        "Y = [H_1, …, H_h] · W_O\nH_i = softmax(Q_i · K_i^T / sqrt(d)) · V_i"
    ),
    "rotary_embedding": "(a, b) -> (a cos(θ) − b sin(θ), a sin(θ) + b cos(θ))",
    "sinusoidal_positions": (
        "p_(t, 2 i) = sin(t / 10000^(2 i / d))\np_(t, 2 i + 1) = cos(t / 10000^(2 i / d))"
    ),
    "conv1d": "y_t = Σ_k W_k · x_(t + k) + b",
    "conv2d": "y_(i, j) = Σ_(k, l) W_(k, l) · x_(i + k, j + l) + b",
    "conv3d": "y_p = Σ_k W_k · x_(p + k) + b",
    "conv_transpose1d": "y_t = Σ_k W_k^T · x_(t − k) + b",
    "conv_transpose2d": "y_(i, j) = Σ_(k, l) W_(k, l)^T · x_(i − k, j − l) + b",
    "conv_transpose3d": "y_p = Σ_k W_k^T · x_(p − k) + b",
    **{f"max_pool{n}d": "y_p = max_k(x_(p + k))" for n in (1, 2, 3)},
    **{f"avg_pool{n}d": "y_p = (1 / n) Σ_k x_(p + k)" for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": "y_p = (1 / n) Σ_k x_(p + k)" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": "y_p = max_k(x_(p + k))" for n in (1, 2, 3)},
    "cosine_similarity": "y = Σ_i a_i b_i / (‖a‖ · ‖b‖)",
    "pairwise_distance": "y = ‖a − b + ε‖",
    "cdist": "y_(i, j) = ‖a_i − b_j‖",
    "interpolate": "y_p = Σ_q w_(p, q) x_q",
    "nn.LSTM": (
        "c_t = f_t · c_(t − 1) + i_t · g_t, h_t = o_t · tanh(c_t)\n"
        "i_t, f_t, o_t = σ(W · x_t + U · h_(t − 1) + b), g_t = tanh(…)"
    ),
    "nn.GRU": (
        "h_t = (1 − z_t) · n_t + z_t · h_(t − 1)\n"
        "z_t, r_t = σ(W · x_t + U · h_(t − 1) + b), n_t = tanh(…)"
    ),
    "nn.RNN": "h_t = tanh(W · x_t + U · h_(t − 1) + b)",
    "nn.MultiheadAttention": (
        "Y = [H_1, …, H_h] · W_O\nH_i = softmax(Q_i · K_i^T / sqrt(d)) · V_i"
    ),
    # reductions and linear algebra
    "mean": "y = (1 / n) Σ_i x_i",
    "var": f"y = (1 / (n − c)) Σ_i (x_i − μ)^2\n{_MEAN}",
    "std": f"y = sqrt((1 / (n − c)) Σ_i (x_i − μ)^2)\n{_MEAN}",
    "logsumexp": "y = log(Σ_i exp(x_i))",
    "norm": "y = ‖x‖",
    "global_norm": "y = sqrt(Σ_i x_i^2)",
    "clip_by_norm": "g -> g · min(1, c / ‖g‖)",
    # optimizers: of one parameter p and its gradient g
    "SGD": "m = μ m + g\np = p − η m",
    "Momentum": "m = μ m + g\np = p − η m",
    "Nesterov": "m = μ m + g\np = p − η (g + μ m)",
    "Adam": (
        "m = β_1 m + (1 − β_1) g\nv = β_2 v + (1 − β_2) g^2\n"
        "p = p − η (m / (1 − β_1^t)) / (sqrt(v / (1 − β_2^t)) + ε)"
    ),
    "AdamW": (
        "m = β_1 m + (1 − β_1) g\nv = β_2 v + (1 − β_2) g^2\n"
        "p = (1 − η λ) p − η (m / (1 − β_1^t)) / (sqrt(v / (1 − β_2^t)) + ε)"
    ),
    "Adamax": (
        "m = β_1 m + (1 − β_1) g\nu = max(β_2 u, |g| + ε)\np = p − η m / (u (1 − β_1^t))"
    ),
    "RMSprop": "v = α v + (1 − α) g^2\np = p − η g / (sqrt(v) + ε)",
    "Adagrad": "s = s + g^2\np = p − η g / (sqrt(s) + ε)",
    "Lion": "p = p − η sign(β_1 m + (1 − β_1) g)\nm = β_2 m + (1 − β_2) g",
}  # fmt: skip


def formula_of(name: str) -> str:
    """The formula of a function, a layer (`nn.LSTM`) or an optimizer; empty for one that has none.

    >>> formula_of("softmax")
    'y_i = exp(x_i) / Σ_j exp(x_j)'
    """
    return FORMULAS.get(name, "")


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUBSCRIPTS = str.maketrans("0123456789ijkntphlmxaos+-−", "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₙₜₚₕₗₘₓₐₒₛ₊₋₋", " ")


def inline(formula: str) -> str:
    """A formula as text, with the signs that there are for powers and indices, as on the page.

    >>> inline("y_i = W^T · x_(n, i) / σ^2")
    'yᵢ = Wᵀ · xₙ,ᵢ / σ²'
    """
    text = re.sub(r"_\(([^()]*)\)", _lowered, formula)
    text = re.sub(r"_([^\W\d_]|\d)(?![^\W\d_])", _lowered, text)
    text = re.sub(r"\^(\d)(?![\d.])", lambda m: m[1].translate(_RAISED), text)
    text = re.sub(r"\^T\b", "ᵀ", text)
    return text.replace("<=", "≤").replace(">=", "≥").replace("->", "→")


def _lowered(m: re.Match[str]) -> str:
    fits = all(c == "," or ord(c) in _SUBSCRIPTS for c in m[1])
    return m[1].translate(_SUBSCRIPTS) if fits else m[0]
