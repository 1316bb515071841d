"""Losses as modules, with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import OptionError
from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.applied import Applied


class Loss(Applied):
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
    """`functional.binary_cross_entropy` with these options. The weights are buffers."""

    function = staticmethod(functional.binary_cross_entropy)

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


class BCEWithLogitsLoss(Loss):
    """`functional.binary_cross_entropy_with_logits` with these options. The weights are buffers."""

    function = staticmethod(functional.binary_cross_entropy_with_logits)

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight)


class CrossEntropyLoss(Loss):
    """`functional.cross_entropy` with these options. The weights are buffers."""

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
    """`functional.ctc_loss` with these options."""

    function = staticmethod(functional.ctc_loss)

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)


class GaussianNLLLoss(Loss):
    """`functional.gaussian_nll_loss` with these options."""

    function = staticmethod(functional.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(full=full, eps=eps, reduction=reduction)


class HuberLoss(Loss):
    """`functional.huber_loss` with these options."""

    function = staticmethod(functional.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class KLDivLoss(Loss):
    """`functional.kl_div` with these options."""

    function = staticmethod(functional.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction=reduction, log_target=log_target)


class L1Loss(Loss):
    """`functional.l1_loss` with these options."""

    function = staticmethod(functional.l1_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MSELoss(Loss):
    """`functional.mse_loss` with these options."""

    function = staticmethod(functional.mse_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class NLLLoss(Loss):
    """`functional.nll_loss` with these options. The weights are buffers."""

    function = staticmethod(functional.nll_loss)

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)


class PoissonNLLLoss(Loss):
    """`functional.poisson_nll_loss` with these options."""

    function = staticmethod(functional.poisson_nll_loss)

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__(log_input=log_input, full=full, eps=eps, reduction=reduction)


class SmoothL1Loss(Loss):
    """`functional.smooth_l1_loss` with these options."""

    function = staticmethod(functional.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction=reduction, beta=beta)


class CosineEmbeddingLoss(Loss):
    """`functional.cosine_embedding_loss` with these options."""

    function = staticmethod(functional.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class HingeEmbeddingLoss(Loss):
    """`functional.hinge_embedding_loss` with these options."""

    function = staticmethod(functional.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class MarginRankingLoss(Loss):
    """`functional.margin_ranking_loss` with these options."""

    function = staticmethod(functional.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class MultiLabelMarginLoss(Loss):
    """`functional.multilabel_margin_loss` with these options."""

    function = staticmethod(functional.multilabel_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MultiLabelSoftMarginLoss(Loss):
    """`functional.multilabel_soft_margin_loss` with these options. The weights are buffers."""

    function = staticmethod(functional.multilabel_soft_margin_loss)

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(weight=weight, reduction=reduction)


class MultiMarginLoss(Loss):
    """`functional.multi_margin_loss` with these options. The weights are buffers."""

    function = staticmethod(functional.multi_margin_loss)

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__(p=p, margin=margin, weight=weight, reduction=reduction)


class SoftMarginLoss(Loss):
    """`functional.soft_margin_loss` with these options."""

    function = staticmethod(functional.soft_margin_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class TripletMarginLoss(Loss):
    """`functional.triplet_margin_loss` with these options."""

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
    """`functional.triplet_margin_with_distance_loss` with these options."""

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
