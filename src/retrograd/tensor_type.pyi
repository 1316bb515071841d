from typing import TYPE_CHECKING

if TYPE_CHECKING:  # that mypy looks at what imports this first, and at `Tensor` then
    from retrograd.functions.tensor.tensor import Tensor as Tensor
