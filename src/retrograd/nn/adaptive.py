"""Softmax over many classes of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import retrograd as rg
from retrograd.errors import DTypeError, OptionError, ShapeError
from retrograd.frontend.random import Generator
from retrograd.frontend.tensor import Tensor
from retrograd.nn.containers import ModuleList, Sequential
from retrograd.nn.linear import Linear
from retrograd.nn.losses import from_front
from retrograd.nn.module import Module


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
        known = rg.expand_dims(from_front(target, self.n_classes), axis=-1)
        known = rg.take(rg.arange(self.n_classes), known)  # refuses what is no class
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
