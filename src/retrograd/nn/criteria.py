"""Losses as modules, with PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any

from retrograd.errors import OptionError
from retrograd.frontend.tensor import Tensor
from retrograd.nn import functional
from retrograd.nn.module import Module, shown


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that no loss knows, when the module is made."""
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise OptionError(f"the reduction of a loss is 'none', 'mean' or 'sum', not {reduction!r}")


def keep(module: Module, name: str, value: Any) -> None:
    """An optional tensor that is not learned."""
    if value is not None:
        module.register_buffer(name, value)


class BCELoss(Module):
    """`functional.binary_cross_entropy` with these options. The weights are buffers."""

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.weight: Any = None
        keep(self, "weight", weight)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.binary_cross_entropy(
            input, target, weight=self.weight, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class BCEWithLogitsLoss(Module):
    """`functional.binary_cross_entropy_with_logits` with these options. The weights are buffers."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__()
        check_reduction(reduction)
        self.weight: Any = None
        keep(self, "weight", weight)
        self.reduction = reduction
        self.pos_weight: Any = None
        keep(self, "pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class CrossEntropyLoss(Module):
    """`functional.cross_entropy` with these options. The weights are buffers."""

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.weight: Any = None
        keep(self, "weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        return shown(self, "ignore_index", "reduction", "label_smoothing")


class CTCLoss(Module):
    """`functional.ctc_loss` with these options."""

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.blank = blank
        self.reduction = reduction
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return functional.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            blank=self.blank,
            reduction=self.reduction,
            zero_infinity=self.zero_infinity,
        )

    def extra_repr(self) -> str:
        return shown(self, "blank", "reduction", "zero_infinity")


class GaussianNLLLoss(Module):
    """`functional.gaussian_nll_loss` with these options."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.full = full
        self.eps = eps
        self.reduction = reduction

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:
        return functional.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        return shown(self, "full", "eps", "reduction")


class HuberLoss(Module):
    """`functional.huber_loss` with these options."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)

    def extra_repr(self) -> str:
        return shown(self, "reduction", "delta")


class KLDivLoss(Module):
    """`functional.kl_div` with these options."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )

    def extra_repr(self) -> str:
        return shown(self, "reduction", "log_target")


class L1Loss(Module):
    """`functional.l1_loss` with these options."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.l1_loss(input, target, reduction=self.reduction)

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class MSELoss(Module):
    """`functional.mse_loss` with these options."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.mse_loss(input, target, reduction=self.reduction)

    def extra_repr(self) -> str:
        return shown(self, "reduction")


class NLLLoss(Module):
    """`functional.nll_loss` with these options. The weights are buffers."""

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.weight: Any = None
        keep(self, "weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        return shown(self, "ignore_index", "reduction")


class PoissonNLLLoss(Module):
    """`functional.poisson_nll_loss` with these options."""

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.poisson_nll_loss(
            input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        return shown(self, "log_input", "full", "eps", "reduction")


class SmoothL1Loss(Module):
    """`functional.smooth_l1_loss` with these options."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__()
        check_reduction(reduction)
        self.reduction = reduction
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Tensor:
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)

    def extra_repr(self) -> str:
        return shown(self, "reduction", "beta")
