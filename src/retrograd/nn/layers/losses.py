"""Losses as modules, with PyTorch's names and arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import retrograd as rg
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.functions.indexing import rows_from_front
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.containers import ModuleList, Sequential
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.functional_module import FunctionalModule
from retrograd.nn.module.module import Module, shown


class Loss(FunctionalModule):
    """A loss with its options. Weights are buffers."""

    hidden = ("weight", "pos_weight", "distance_function")

    def __init__(self, **options: Any) -> None:
        reduction = options["reduction"]
        if reduction not in ("none", "mean", "sum", "batchmean"):
            raise OptionError(
                f"the reduction of a loss is 'none', 'mean' or 'sum', not {reduction!r}"
            )
        weights = [n for n in ("weight", "pos_weight") if options.get(n) is not None]
        super().__init__(**{n: None if n in weights else v for n, v in options.items()})
        for name in weights:
            self.register_buffer(name, options[name])


class BCELoss(Loss):
    """`functional.binary_cross_entropy` with these options. The weights are buffers.

    `-(t log(x) + (1 - t) log(1 - x))` for probabilities x. Input and target are of one shape, the
    result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction` other
    than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.BCELoss()(rg.tensor([0.5]), rg.tensor([1.0])).item()
    0.6931
    """

    function = staticmethod(functional.binary_cross_entropy)

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


class BCEWithLogitsLoss(Loss):
    """`functional.binary_cross_entropy_with_logits` with these options. The weights are buffers.

    `BCELoss` of `sigmoid(x)`, without overflow. Input and target are of one shape, the result is
    `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction` other than
    "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.BCEWithLogitsLoss()(rg.tensor([0.0]), rg.tensor([1.0])).item()
    0.6931
    """

    function = staticmethod(functional.binary_cross_entropy_with_logits)

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight)


class CrossEntropyLoss(Loss):
    """`functional.cross_entropy` with these options. The weights are buffers.

    `-log_softmax(x)[target]` over classes. `[N, C, ...]` with classes `[N, ...]`, or probabilities
    `[N, C, ...]`, to `[]`, or `[N, ...]` with `reduction="none"`. `OptionError` for a `reduction`
    other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.CrossEntropyLoss()(rg.zeros((2, 4)), [0, 3]).item()
    1.3863
    """

    function = staticmethod(functional.cross_entropy)

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )


class CTCLoss(Loss):
    """`functional.ctc_loss` with these options.

    Minus the logarithm of the probability of a sequence of labels, whatever its alignment. `[T, N,
    C]` log-probabilities and targets `[N, S]` with both lengths `[N]` to `[]`, or `[N]` with
    `reduction="none"`. `OptionError` for a `reduction` other than "none", "mean" and "sum",
    `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.CTCLoss()(rg.log(rg.full((3, 1, 2), 0.5)), [[1]], [3], [1]).item()
    0.2877
    """

    function = staticmethod(functional.ctc_loss)

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)


class GaussianNLLLoss(Loss):
    """`functional.gaussian_nll_loss` with these options.

    `(log(var) + (x - t)**2 / var) / 2`. Input and target are of one shape, the result is `[]`, or
    of that shape with `reduction="none"`. `OptionError` for a `reduction` other than "none", "mean"
    and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.GaussianNLLLoss()(rg.ones((2,)), rg.zeros((2,)), rg.ones((2,))).item()
    0.5
    """

    function = staticmethod(functional.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)


class HuberLoss(Loss):
    """`functional.huber_loss` with these options.

    `(x - t)**2 / 2` up to `delta`, `delta (|x - t| - delta / 2)` beyond. Input and target are of
    one shape, the result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a
    `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.HuberLoss()(rg.tensor([3.0]), rg.tensor([0.0])).item()
    2.5
    """

    function = staticmethod(functional.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class KLDivLoss(Loss):
    """`functional.kl_div` with these options.

    `t (log(t) - x)` for log-probabilities x; also `reduction="batchmean"`. Input and target are of
    one shape, the result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a
    `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.KLDivLoss(reduction="sum")(
    ...     rg.log(rg.tensor([0.5, 0.5])), rg.tensor([1.0, 0.0])
    ... ).item()
    0.6931
    """

    function = staticmethod(functional.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)


class L1Loss(Loss):
    """`functional.l1_loss` with these options.

    `|x - t|`. Input and target are of one shape, the result is `[]`, or of that shape with
    `reduction="none"`. `OptionError` for a `reduction` other than "none", "mean" and "sum",
    `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.L1Loss()(rg.tensor([1.0, 3.0]), rg.zeros((2,))).item()
    2.0
    """

    function = staticmethod(functional.l1_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MSELoss(Loss):
    """`functional.mse_loss` with these options.

    `(x - t)**2`. Input and target are of one shape, the result is `[]`, or of that shape with
    `reduction="none"`. `OptionError` for a `reduction` other than "none", "mean" and "sum",
    `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.MSELoss()(rg.tensor([1.0, 3.0]), rg.zeros((2,))).item()
    5.0
    """

    function = staticmethod(functional.mse_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class NLLLoss(Loss):
    """`functional.nll_loss` with these options. The weights are buffers.

    `-x[target]` for log-probabilities x. `[N, C, ...]` with classes `[N, ...]` to `[]`, or `[N,
    ...]` with `reduction="none"`. `OptionError` for a `reduction` other than "none", "mean" and
    "sum", `DTypeError` for targets that are not integers, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.NLLLoss()(rg.tensor([[-1.0, -2.0]]), [1]).item()
    2.0
    """

    function = staticmethod(functional.nll_loss)

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)


class PoissonNLLLoss(Loss):
    """`functional.poisson_nll_loss` with these options.

    `exp(x) - t x`, without `log_input` `x - t log(x + eps)`. Input and target are of one shape, the
    result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction` other
    than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.PoissonNLLLoss()(rg.tensor([0.0]), rg.tensor([2.0])).item()
    1.0
    """

    function = staticmethod(functional.poisson_nll_loss)

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)


class SmoothL1Loss(Loss):
    """`functional.smooth_l1_loss` with these options.

    `(x - t)**2 / (2 beta)` up to `beta`, `|x - t| - beta / 2` beyond. Input and target are of one
    shape, the result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a
    `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.SmoothL1Loss()(rg.tensor([3.0]), rg.tensor([0.0])).item()
    2.5
    """

    function = staticmethod(functional.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction, beta=beta)


class CosineEmbeddingLoss(Loss):
    """`functional.cosine_embedding_loss` with these options.

    `1 - cos(x1, x2)` where the target is 1, `max(cos(x1, x2) - margin, 0)` where it is -1. `[N, D]`
    twice with targets `[N]`, or `[D]` twice with `[]`. `OptionError` for a `reduction` other than
    "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.CosineEmbeddingLoss()(
    ...     rg.tensor([1.0, 0.0]), rg.tensor([0.0, 1.0]), rg.tensor(1)
    ... ).item()
    1.0
    """

    function = staticmethod(functional.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class HingeEmbeddingLoss(Loss):
    """`functional.hinge_embedding_loss` with these options.

    x where the target is 1, `max(margin - x, 0)` where it is -1. Input and target are of one shape,
    the result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction`
    other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.HingeEmbeddingLoss()(rg.tensor([0.25, 0.25]), rg.tensor([1, -1])).item()
    0.5
    """

    function = staticmethod(functional.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class HingeLoss(Loss):
    """`functional.hinge_loss` with these options.

    `max(margin - t x, 0)` for targets -1 and 1, or its square. Input and target are of one shape,
    the result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction`
    other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.HingeLoss()(rg.tensor([0.25, 0.25]), rg.tensor([1.0, -1.0])).item()
    1.0
    """

    function = staticmethod(functional.hinge_loss)

    def __init__(self, reduction: str = "mean", margin: float = 1.0, squared: bool = False) -> None:
        super().__init__(reduction=reduction, margin=margin, squared=squared)


class SquaredHingeLoss(Loss):
    """`functional.squared_hinge_loss` with these options.

    `max(margin - t x, 0)**2` for targets -1 and 1. Input and target are of one shape, the result is
    `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction` other than
    "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.SquaredHingeLoss()(rg.tensor([0.5, 0.5]), rg.tensor([1.0, -1.0])).item()
    1.25
    """

    function = staticmethod(functional.squared_hinge_loss)

    def __init__(self, reduction: str = "mean", margin: float = 1.0) -> None:
        super().__init__(reduction=reduction, margin=margin)


class FocalLoss(Loss):
    """`functional.focal_loss` with these options: classes by index. The weights are buffers.

    `-weight[t] (1 - p)**gamma log p`, `p = softmax(x)[t]`. `[N, C, ...]` with classes `[N, ...]` to
    `[]`, or `[N, ...]` with `reduction="none"`. `OptionError` for a `reduction` other than "none",
    "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.FocalLoss()(rg.zeros((1, 2)), [1]).item()
    0.1733
    """

    function = staticmethod(functional.focal_loss)

    def __init__(
        self,
        weight: Any = None,
        gamma: float = 2.0,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight=weight, gamma=gamma, ignore_index=ignore_index, reduction=reduction)


class SigmoidFocalLoss(Loss):
    """`functional.sigmoid_focal_loss` with these options, but for the mean by default.

    `-a (1 - p)**gamma log p` for logits, p the probability of what is true. Input and target are of
    one shape, the result is `[]`, or of that shape with `reduction="none"`. `OptionError` for a
    `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.SigmoidFocalLoss()(rg.zeros((1,)), rg.ones((1,))).item()
    0.0433
    """

    function = staticmethod(functional.sigmoid_focal_loss)

    def __init__(self, alpha: float = 0.25, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(alpha=alpha, gamma=gamma, reduction=reduction)


class DiceLoss(Loss):
    """`functional.dice_loss` with these options.

    One minus the Dice coefficient of probabilities and targets, for each sample, or sample and
    class. `[N, ...]` twice, or `[N, C, ...]` with classes `[N, ...]`, to `[]`. `OptionError` for a
    `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.DiceLoss()(rg.tensor([[1.0, 1.0, 0.0]]), rg.tensor([[1.0, 0.0, 0.0]])).item()
    0.3333
    """

    function = staticmethod(functional.dice_loss)

    def __init__(self, smooth: float = 1e-6, dim: Any = None, reduction: str = "mean") -> None:
        super().__init__(smooth=smooth, dim=dim, reduction=reduction)


class TverskyLoss(Loss):
    """`functional.tversky_loss` with these options.

    `1 - TP / (TP + alpha FP + beta FN)` of probabilities and targets, for each sample, or sample
    and class. `[N, ...]` twice, or `[N, C, ...]` with classes `[N, ...]`, to `[]`. `OptionError`
    for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> p, t = rg.tensor([[1.0, 1.0, 0.0]]), rg.tensor([[1.0, 0.0, 0.0]])
    >>> rg.nn.TverskyLoss(0.2, 0.8)(p, t).item()
    0.1667
    """

    function = staticmethod(functional.tversky_loss)

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        smooth: float = 1e-6,
        dim: Any = None,
        reduction: str = "mean",
        gamma: float = 1.0,
    ) -> None:
        super().__init__(
            alpha=alpha, beta=beta, smooth=smooth, dim=dim, reduction=reduction, gamma=gamma
        )


class LinearCrossEntropyLoss(Module):
    """`functional.linear_cross_entropy` with a `linear` map of its own, from features to logits.

    `[N, in_features]` with classes `[N]`, or, with `out_features` `(d1, ...)`, `[N, d1, ...]`, to
    `[]`, or the shape of the classes with `reduction="none"`. `OptionError` for another
    `reduction`, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.LinearCrossEntropyLoss(3, 4)(rg.zeros((2, 3)), [0, 3]).item()
    1.3863
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Sequence[int] = (),
        bias: bool = False,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing = label_smoothing
        self.weight: Any = None
        if weight is not None:
            self.register_buffer("weight", weight)
        size = math.prod(self.out_features, start=num_classes)
        self.linear = Linear(in_features, size, bias, generator=generator, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        w, b = self.linear.weight, self.linear.bias
        return functional.linear_cross_entropy(
            input, w.reshape((*shape, w.shape[-1])), target,
            linear_bias=None if b is None else b.reshape(shape), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return shown(self, "num_classes", "out_features", "reduction")


class DistillationLoss(Loss):
    """`functional.distillation_loss` with these options, called with the logits of the student,
    those of the teacher, and targets, if any.

    `T**2 KL(softmax(teacher / T) || softmax(x / T))`, mixed with the cross entropy by `alpha` where
    there are targets. `[N, C, ...]` twice to `[]`, or `[N, ...]` with `reduction="none"`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.DistillationLoss()(rg.tensor([[0.0, 2.0]]), rg.tensor([[2.0, 0.0]])).item()
    1.8485
    """

    function = staticmethod(functional.distillation_loss)

    def __init__(
        self, temperature: float = 2.0, alpha: float = 0.5, reduction: str = "mean"
    ) -> None:
        super().__init__(temperature=temperature, alpha=alpha, reduction=reduction)


class MarginRankingLoss(Loss):
    """`functional.margin_ranking_loss` with these options.

    `max(-t (x1 - x2) + margin, 0)`. Input and target are of one shape, the result is `[]`, or of
    that shape with `reduction="none"`. `OptionError` for a `reduction` other than "none", "mean"
    and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.MarginRankingLoss()(rg.tensor([1.0]), rg.tensor([3.0]), rg.tensor([1])).item()
    2.0
    """

    function = staticmethod(functional.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class MultiLabelMarginLoss(Loss):
    """`functional.multilabel_margin_loss` with these options.

    The sum of `max(1 - (x[j] - x[i]), 0) / C` over labels j and the other classes i; labels end at
    -1. `[N, C]` with labels `[N, C]`, or `[C]` with `[C]`. `OptionError` for a `reduction` other
    than "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.MultiLabelMarginLoss()(rg.tensor([0.0, 1.0]), [1, -1]).item()
    0.0
    """

    function = staticmethod(functional.multilabel_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MultiLabelSoftMarginLoss(Loss):
    """`functional.multilabel_soft_margin_loss` with these options. The weights are buffers.

    The mean of `BCEWithLogitsLoss` over classes. `[N, C]` with targets 0 or 1 `[N, C]`.
    `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where the
    shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.MultiLabelSoftMarginLoss()(rg.zeros((1, 2)), rg.ones((1, 2))).item()
    0.6931
    """

    function = staticmethod(functional.multilabel_soft_margin_loss)

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


class MultiMarginLoss(Loss):
    """`functional.multi_margin_loss` with these options. The weights are buffers.

    The sum of `max(margin - x[target] + x[i], 0)**p / C` over the other classes i. `[N, C]` with
    classes `[N]`, or `[C]` with `[]`. `OptionError` for a `reduction` other than "none", "mean" and
    "sum", `DTypeError` for targets that are not integers, `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.MultiMarginLoss()(rg.zeros((1, 2)), [0]).item()
    0.5
    """

    function = staticmethod(functional.multi_margin_loss)

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(p=p, margin=margin, weight=weight, reduction=reduction)


class SoftMarginLoss(Loss):
    """`functional.soft_margin_loss` with these options.

    `log(1 + exp(-t x))` for targets 1 and -1. Input and target are of one shape, the result is
    `[]`, or of that shape with `reduction="none"`. `OptionError` for a `reduction` other than
    "none", "mean" and "sum", `ShapeError` where the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.SoftMarginLoss()(rg.tensor([0.0]), rg.tensor([1.0])).item()
    0.6931
    """

    function = staticmethod(functional.soft_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class TripletMarginLoss(Loss):
    """`functional.triplet_margin_loss` with these options.

    `max(|a - p| - |a - n| + margin, 0)` for an anchor, a positive and a negative. `[N, D]` three
    times. `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where
    the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.TripletMarginLoss()(rg.zeros((1, 2)), rg.zeros((1, 2)), rg.zeros((1, 2))).item()
    1.0
    """

    function = staticmethod(functional.triplet_margin_loss)

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin=margin, p=p, eps=eps, swap=swap, reduction=reduction)


class TripletMarginWithDistanceLoss(Loss):
    """`functional.triplet_margin_with_distance_loss` with these options.

    `max(d(a, p) - d(a, n) + margin, 0)`, d being `PairwiseDistance` by default. `[N, D]` three
    times. `OptionError` for a `reduction` other than "none", "mean" and "sum", `ShapeError` where
    the shapes do not fit.

    >>> import retrograd as rg
    >>> rg.nn.TripletMarginWithDistanceLoss()(
    ...     rg.zeros((1, 2)), rg.zeros((1, 2)), rg.zeros((1, 2))
    ... ).item()
    1.0
    """

    function = staticmethod(functional.triplet_margin_with_distance_loss)

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            distance_function=distance_function, margin=margin, swap=swap, reduction=reduction
        )


class AdaptiveLoss(NamedTuple):
    """What `AdaptiveLogSoftmaxWithLoss` returns."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes in clusters (Grave et al., arXiv:1609.04309).

    Classes are numbered from the most frequent to the rarest. Those below `cutoffs[0]` and one
    entry for each cluster make up the head, `softmax(W x)`; the classes from `cutoffs[i]` up to the
    next cutoff share the probability of entry i, `softmax(W2 (W1 x))` with
    `in_features // div_value**(i + 1)` numbers in between. A class of a cluster has the product of
    both probabilities.

    `[N, in_features]` with targets `[N]`, or one sample of each, gives the log-probability of each
    target, `output`, and minus their mean, `loss`. All clusters are computed for all samples, so
    that shapes do not depend on the targets.

    `OptionError` for cutoffs that do not ascend below `n_classes`, `DTypeError` for targets that
    are not integers, `ShapeError` where they do not fit the input.

    >>> import retrograd as rg
    >>> layer = rg.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])
    >>> layer(rg.ones((3, 16)), [0, 7, 19]).output.shape, layer.log_prob(rg.ones((3, 16))).shape
    ((3,), (3, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = [*map(int, cutoffs), n_classes]
        if len(ends) < 2 or ends[0] < 1 or ends != sorted(set(ends)):
            raise OptionError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs ascend from at least 1 and are less than the "
                f"{n_classes} classes, not {list(cutoffs)}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = ends
        self.div_value = div_value
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends) - 1
        options: dict[str, Any] = {"generator": generator, "dtype": dtype}
        size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            width = int(in_features // div_value ** (i + 1))
            if width < 1:
                raise OptionError(
                    f"AdaptiveLogSoftmaxWithLoss: {in_features} features divided by {div_value} "
                    f"{i + 1} times leave none for cluster {i}; take a smaller div_value"
                )
            first = Linear(in_features, width, bias=False, **options)
            self.tail.append(Sequential(first, Linear(width, high - low, bias=False, **options)))

    def _clusters(self) -> list[tuple[int, int]]:
        """The first class of each, and that after the last."""
        return list(zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True))

    def _checked(self, input: Any, rank: int | None = None) -> Tensor:
        x = rg.asarray(input)
        ranks = (1, 2) if rank is None else (rank,)
        if x.ndim not in ranks or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: inputs are [N, {self.in_features}], not {x.shape}"
            )
        return x

    def forward(self, input: Any, target: Any) -> AdaptiveLoss:
        x, target = self._checked(input), rg.asarray(target)
        if not target.dtype.is_integer:
            raise DTypeError(
                f"AdaptiveLogSoftmaxWithLoss: targets are integers, not {target.dtype}"
            )
        if target.shape != x.shape[:-1]:
            raise ShapeError(
                f"AdaptiveLogSoftmaxWithLoss: inputs {x.shape} have targets of the shape "
                f"{x.shape[:-1]}, not {target.shape}"
            )
        known = rows_from_front(rg.arange(self.n_classes), target, of="label")  # or it is refused
        known = rg.expand_dims(known, axis=-1)
        entry = known
        for i, (low, _) in enumerate(self._clusters()):
            entry = rg.where(known >= low, self.shortlist_size + i, entry)
        output = rg.take_along_axis(rg.log_softmax(self.head(x)), entry, axis=-1)
        for part, (low, high) in zip(self.tail, self._clusters(), strict=True):
            place = rg.clip(known - low, 0, high - low - 1)
            own = rg.take_along_axis(rg.log_softmax(part(x)), place, axis=-1)
            output = output + rg.where((known >= low) & (known < high), own, 0.0)
        output = rg.squeeze(output, axis=-1)
        return AdaptiveLoss(output, -rg.mean(output))

    def log_prob(self, input: Any) -> Tensor:
        """The log-probabilities of all classes: `[N, in_features]` gives `[N, n_classes]`."""
        x = self._checked(input, 2)
        head, n = rg.log_softmax(self.head(x)), self.shortlist_size
        parts = [head[:, :n]]
        for i, part in enumerate(self.tail):
            parts.append(rg.log_softmax(part(x)) + head[:, n + i : n + i + 1])
        return rg.concat(parts, axis=1)

    def predict(self, input: Any) -> Tensor:
        """A class for each sample, int64: that of the greatest entry of the head or, where this is
        a cluster, the most probable of all classes."""
        x = self._checked(input, 2)
        top = rg.argmax(self.head(x), axis=1)
        return rg.where(top < self.shortlist_size, top, rg.argmax(self.log_prob(x), axis=1))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.n_classes}, cutoffs={self.cutoffs[:-1]}"
