"""Neurons, layers and perceptrons of scalars, as micrograd has them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from retrograd.errors import FormatError, ShapeError
from retrograd.scalar import Value


class Module:
    """What has parameters. Beyond what micrograd has, it goes into checkpoints.

    >>> from retrograd.micrograd import MLP
    >>> one, other = MLP(2, [3, 1]), MLP(2, [3, 1])
    >>> other.load_state_dict(one.state_dict())
    >>> other([1.0, 2.0]).data == one([1.0, 2.0]).data
    True
    """

    def zero_grad(self) -> None:
        """Set the gradient of every parameter to 0."""
        for p in self.parameters():
            p.grad = 0.0

    def parameters(self) -> list[Any]:
        """The parameters, in a fixed order."""
        return []

    def state_dict(self) -> dict[str, Any]:
        """The values of the parameters, in their order, as one array."""
        return {"parameters": np.array([p.data for p in self.parameters()], np.float64)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the values of `state_dict()`; `FormatError` for the state of something else,
        `ShapeError` for one of other sizes, and then nothing has changed."""
        if not isinstance(state, Mapping) or set(state) != {"parameters"}:
            raise FormatError(
                f"the state of a {type(self).__name__} is {{'parameters': array}}, not "
                f"{state!r:.80}"
            )
        values, own = np.asarray(state["parameters"], np.float64), self.parameters()
        if values.shape != (len(own),):
            raise ShapeError(
                f"{type(self).__name__} has {len(own)} parameters, the state {values.shape}"
            )
        for p, value in zip(own, values.tolist(), strict=True):
            p.data = value


class Neuron(Module):
    """`relu(w . x + b)`, or without `nonlin` the sum alone. The weights are drawn from [-1, 1) by
    the module `random`, whose seed decides about them; the bias is 0.

    >>> import random
    >>> random.seed(0)
    >>> n = Neuron(2, nonlin=False)
    >>> n
    LinearNeuron(2)
    >>> n([1.0, -1.0]).data == n.w[0].data - n.w[1].data
    True
    """

    def __init__(self, nin: int, nonlin: bool = True) -> None:
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0.0)
        self.nonlin = nonlin

    def __call__(self, x: Sequence[Any]) -> Any:
        if len(x) != len(self.w):
            raise ValueError(f"a neuron of {len(self.w)} inputs was given {len(x)}")
        act = sum([wi * xi for wi, xi in zip(self.w, x, strict=True)], self.b)
        return act.relu() if self.nonlin else act

    def parameters(self) -> list[Any]:
        return [*self.w, self.b]

    def __repr__(self) -> str:
        return f"{'ReLU' if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class Layer(Module):
    """Neurons on the same inputs; a single one gives its value, several a list."""

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        self.neurons = [Neuron(nin, **kwargs) for _ in range(nout)]

    def __call__(self, x: Sequence[Any]) -> Any:
        out = [n(x) for n in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self) -> list[Any]:
        return [p for n in self.neurons for p in n.parameters()]

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(map(str, self.neurons))}]"


class MLP(Module):
    """Layers one after the other, all but the last with a relu.

    >>> MLP(2, [4, 1])
    MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)],
    Layer of [LinearNeuron(4)]]
    """

    def __init__(self, nin: int, nouts: Sequence[int]) -> None:
        sizes = [nin, *nouts]
        last = len(nouts) - 1
        self.layers = [Layer(sizes[i], sizes[i + 1], nonlin=i != last) for i in range(last + 1)]

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer([x] if isinstance(x, Value) else x)  # what a layer of one neuron gives
        return x

    def parameters(self) -> list[Any]:
        return [p for layer in self.layers for p in layer.parameters()]

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(map(str, self.layers))}]"
