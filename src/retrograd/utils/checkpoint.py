"""`torch.utils.checkpoint`: forgetting what is between, and computing it again for the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.transforms.checkpoint import checkpoint as rematerialized


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """The result of `function(*args, **kwargs)`, of which only the arguments are kept: what its
    gradient needs is computed again. `rg.checkpoint(function)` is the function that does so.

    `use_reentrant` and `preserve_rng_state` say how PyTorch does it, and are passed over: numbers
    drawn are the same both times.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> rg.utils.checkpoint.checkpoint(lambda x: x**2, x, use_reentrant=False).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """
    return rematerialized(function)(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """Apply functions, or the parts of a `Sequential`, one after the other, in so many segments, of
    which only the inputs are kept.

    >>> import retrograd as rg
    >>> rg.utils.checkpoint.checkpoint_sequential([rg.sin, rg.cos, rg.exp], 2, rg.zeros(1))
    Tensor([2.7182817], dtype=float32)
    """
    parts = list(functions)
    size = max(1, len(parts) // segments)
    starts = [i * size for i in range(segments) if i * size < len(parts)]
    x = input
    for start, end in zip(starts, [*starts[1:], len(parts)], strict=True):

        def segment(x: Any, parts: Any = parts[start:end]) -> Any:
            for part in parts:
                x = part(x)
            return x

        x = checkpoint(segment, x, **options)
    return x
