"""Losses with margins as modules, with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.criteria import check_reduction, keep
from retrograd.nn.module import Module, shown


class CosineEmbeddingLoss(Module):
    """`functional.cosine_embedding_loss` with these options."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.margin = margin
        self.reduction = reduction

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return functional.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return shown(self, "margin", "reduction")


class HingeEmbeddingLoss(Module):
    """`functional.hinge_embedding_loss` with these options."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.margin = margin
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.hinge_embedding_loss(
            input, target, margin=self.margin, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return shown(self, "margin", "reduction")


class MarginRankingLoss(Module):
    """`functional.margin_ranking_loss` with these options."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.margin = margin
        self.reduction = reduction

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return functional.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return shown(self, "margin", "reduction")


class MultiLabelMarginLoss(Module):
    """`functional.multilabel_margin_loss` with these options."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class MultiLabelSoftMarginLoss(Module):
    """`functional.multilabel_soft_margin_loss` with these options. The weights are buffers."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.weight: Any = None
        keep(self, "weight", weight)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class MultiMarginLoss(Module):
    """`functional.multi_margin_loss` with these options. The weights are buffers."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.p = p
        self.margin = margin
        self.weight: Any = None
        keep(self, "weight", weight)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        return shown(self, "p", "margin", "reduction")


class SoftMarginLoss(Module):
    """`functional.soft_margin_loss` with these options."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.soft_margin_loss(input, target, reduction=self.reduction)

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class TripletMarginLoss(Module):
    """`functional.triplet_margin_loss` with these options."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap
        self.reduction = reduction

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        return functional.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        return shown(self, "margin", "p", "eps", "swap", "reduction")


class TripletMarginWithDistanceLoss(Module):
    """`functional.triplet_margin_with_distance_loss` with these options."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap
        self.reduction = reduction

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"margin={self.margin}, swap={self.swap}, reduction={self.reduction!r}"
