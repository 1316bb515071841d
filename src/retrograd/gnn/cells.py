"""Cells: how a node's state follows from what its neighbours send. For `dag_scan` and layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.functions import elementwise as el
from retrograd.functions.random.generator import Generator
from retrograd.nn.layers.linear import Linear
from retrograd.nn.module.module import Module


class SumCell(Module):
    """`h = f(a W + x U + b)`, with a the sum of the weighted states of predecessors.

    `[N, state]` and `[N, in_features]` to `[N, state]`. `ShapeError` where they do not fit.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.SumCell(3, 2)(rg.ones((4, 2)), rg.ones((4, 3))).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, state: int, activation: Callable[[Any], Any] = el.tanh,
        *, generator: Generator | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        options: Any = {"generator": generator, "dtype": dtype}
        self.state, self.activation = state, activation
        self.from_sum = Linear(state, state, False, **options)
        self.from_input = Linear(in_features, state, **options)

    def forward(self, a: Any, x: Any) -> Any:
        return self.activation(self.from_sum(a) + self.from_input(x))


class GRU(Module):
    """A gated recurrent unit. As a cell of `dag_scan` the sum a of what predecessors send is the
    state that is updated by the node's input x:

        r, z = sigmoid(x W_r + a U_r + b_r), sigmoid(x W_z + a U_z + b_z)
        n = tanh(x W_n + b_n + r * (a U_n + c_n)),  h = (1 - z) * n + z * a

    `[N, state]` and `[N, in_features]` to `[N, state]`. `ShapeError` where they do not fit.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> gnn.GRU(3, 2)(rg.ones((4, 2)), rg.ones((4, 3))).shape
    (4, 2)
    """

    def __init__(
        self, in_features: int, state: int, *, generator: Generator | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        options: Any = {"generator": generator, "dtype": dtype}
        self.state = state
        self.from_input = Linear(in_features, 3 * state, **options)
        self.from_state = Linear(state, 3 * state, **options)

    def forward(self, a: Any, x: Any) -> Any:
        s = self.state
        u, v = self.from_input(x), self.from_state(a)
        r, z = (el.sigmoid(u[:, k * s : (k + 1) * s] + v[:, k * s : (k + 1) * s]) for k in (0, 1))
        n = el.tanh(u[:, 2 * s :] + r * v[:, 2 * s :])
        return n + z * (a - n)


class TreeLSTM(Module):
    """The child-sum tree LSTM, for any directed acyclic graph: a node has one forget gate for each
    of its predecessors k, which looks at the node's own input. State `{"h": .., "c": ..}`.

        i, o, u = sigmoid(x W_i + s U_i + b_i), sigmoid(..), tanh(..)   with s the sum of w_k h_k
        f_k = sigmoid(x W_f + h_k U_f + b_f)
        c = i * u + sum of w_k f_k * c_k,  h = o * tanh(c)

    K. S. Tai et al., Improved semantic representations from tree-structured LSTM networks (2015).

    `[N, in_features]` to states `[N, width]`. `ShapeError` where they do not fit.

    >>> import retrograd as rg
    >>> from retrograd import gnn
    >>> tree = gnn.Graph(3, [[0, 1], [2, 2]])
    >>> gnn.dag_scan(gnn.TreeLSTM(4, 5), tree, rg.ones((3, 4)))["h"].shape
    (3, 5)
    """

    def __init__(
        self, in_features: int, width: int, *, generator: Generator | None = None, dtype: Any = None
    ) -> None:
        super().__init__()
        options: Any = {"generator": generator, "dtype": dtype}
        self.width = width
        self.from_input = Linear(in_features, 3 * width, **options)
        self.from_sum = Linear(width, 3 * width, False, **options)
        self.forget_input = Linear(in_features, width, **options)
        self.forget_state = Linear(width, width, False, **options)

    @property
    def state(self) -> dict[str, int]:
        return {"h": self.width, "c": self.width}

    def message(self, state: Any, edge: Any) -> Any:
        gate = el.sigmoid(self.forget_input(edge.target) + self.forget_state(state["h"]))
        sent = {"h": state["h"], "c": gate * state["c"]}
        if edge.weight is None:
            return sent
        return {name: part * edge.weight[:, None] for name, part in sent.items()}

    def forward(self, a: Any, x: Any) -> Any:
        w = self.width
        gates = self.from_input(x) + self.from_sum(a["h"])
        i, o = (el.sigmoid(gates[:, k * w : (k + 1) * w]) for k in (0, 1))
        c = i * el.tanh(gates[:, 2 * w :]) + a["c"]
        return {"h": o * el.tanh(c), "c": c}
