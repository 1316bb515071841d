"""Recurrent layers, with PyTorch's names, arguments, shapes and parameters.

The inputs of all steps are mapped by one product; the steps are one `scan`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import retrograd as rg
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.errors import OptionError, ShapeError
from retrograd.functions.random.generator import Generator
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Graph
from retrograd.nn import functional, init
from retrograd.nn.functional.dropouts import check_probability
from retrograd.nn.module.module import Module, shown
from retrograd.nn.module.parameter import Parameter
from retrograd.nn.utils import rnn
from retrograd.nn.utils.rnn import PackedSequence
from retrograd.ops.assume import guard
from retrograd.ops.control import Scan
from retrograd.ops.identity import items
from retrograd.ops.leaf import input_node

State = tuple[Any, ...]


def rnn_step(x: Any, state: State, w: Any, b: Any, nonlinearity: str) -> State:
    """`act(x + h w^T + b)`, of x after its linear map. Steps are of tensors, or of nodes."""
    y = x + _linear(state[0], w, b)
    return (rg.tanh(y) if nonlinearity == "tanh" else rg.relu(y),)


def lstm_step(x: Any, state: State, w: Any, b: Any, projection: Any = None) -> State:
    """Gates i, f, g, o: `c <- f c + i g`, `h <- o tanh(c)` (Hochreiter, Schmidhuber, 1997)."""
    h, c = state
    i, f, g, o = _parts(x + _linear(h, w, b), 4)
    c = rg.sigmoid(f) * c + rg.sigmoid(i) * rg.tanh(g)
    h = rg.sigmoid(o) * rg.tanh(c)
    return (h if projection is None else _linear(h, projection, None), c)


def gru_step(x: Any, state: State, w: Any, b: Any) -> State:
    """Gates r, z, n: `h <- (1 - z) n + z h`, with r on what n takes of h (Cho et al., 2014)."""
    (h,) = state
    xr, xz, xn = _parts(x, 3)
    hr, hz, hn = _parts(_linear(h, w, b), 3)
    z = rg.sigmoid(xz + hz)
    n = rg.tanh(xn + rg.sigmoid(xr + hr) * hn)
    return (n + z * (h - n),)


def _linear(h: Any, w: Any, b: Any) -> Any:
    y = rg.matmul(h, rg.matrix_transpose(w))
    return y if b is None else rg.add(y, b)


def _parts(x: Any, count: int) -> tuple[Tensor, ...]:
    return rg.split(x, count, axis=-1)


@op_function
def _all_steps(
    kind: str,
    nonlinearity: str,
    x: ArrayLike,
    state: Sequence[ArrayLike],
    weights: Sequence[ArrayLike],
    here: ArrayLike,
    reverse: bool,
) -> Any:
    """The outputs and the last state of all steps over inputs `[L, N, gates]`, which are mapped
    already; `weights` are those of the state, their biases and the projection. States of sequences
    that are not `here` in a step, of `[L, N]`, stay what they are.

    It is one operation to whoever records it, since a body that is traced is a new one each time.
    """
    first: list[Any] = [rg.astype(part, x.dtype) for part in state]
    given = [w for w in weights if w is not None]
    own = [input_node(n.type) for n in (*given, *first)]
    steps = [x] if here is None else [x, here]
    row, *is_here = [input_node(n.type.with_shape(n.shape[1:])) for n in steps]
    rest = iter(own)
    w, b, projection = [None if w is None else next(rest) for w in weights]
    before: State = tuple(rest)
    if kind == "LSTM":
        after = lstm_step(row, before, w, b, projection)
    elif kind == "GRU":
        after = gru_step(row, before, w, b)
    else:
        after = rnn_step(row, before, w, b, nonlinearity)
    for which in is_here:
        still = rg.expand_dims(which, axis=-1)
        after = tuple([rg.where(still, new, old) for new, old in zip(after, before, strict=True)])
    body = Graph([*own, row, *is_here], [*after, after[0]], "step")
    scan = Scan(body, len(after), len(steps), x.shape[0], reverse)
    *last, y = items(scan(*given, *first, *steps))
    return y, last


GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


class _Recurrent(Module):
    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        nonlinearity: str = "tanh",
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size, num_layers) < 1:
            raise ShapeError(
                f"{self.kind}({input_size}, {hidden_size}, {num_layers}): sizes are at least 1"
            )
        if proj_size and (self.kind != "LSTM" or not 0 < proj_size < hidden_size):
            raise ShapeError(f"{self.kind}: proj_size is for LSTM, below hidden_size: {proj_size}")
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(f"an RNN's nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        check_probability(dropout)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self.nonlinearity = nonlinearity
        bound = 1 / math.sqrt(hidden_size)
        gates, out = GATES[self.kind] * hidden_size, proj_size or hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            wide = input_size if layer == 0 else out * directions
            for end in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, wide), "weight_hh": (gates, out)
                }  # fmt: skip
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    drawn = init.uniform(shape, -bound, bound, generator=generator, dtype=dtype)
                    setattr(self, f"{name}_l{layer}{end}", Parameter(drawn))
        self.generator = (generator or init.default_generator()).split() if dropout else None

    def _of(self, name: str, layer: int, end: str) -> Any:
        return getattr(self, f"{name}_l{layer}{end}", None)

    def _mapped(self, x: Tensor, layer: int, end: str) -> Tensor:
        """All inputs at once: one large product in place of many small ones."""
        w, b = self._of("weight_ih", layer, end), self._of("bias_ih", layer, end)
        return functional.linear(x, w, b)

    def _run(
        self, x: Tensor, state: State, layer: int, end: str, sizes: list[int] | None
    ) -> tuple[Tensor, State]:
        """One layer in one direction over `[L, N, size]`, or over packed elements `[sum, size]`."""
        none = f"{self.kind}: sequences have at least one element, not {x.shape[0]}"
        x = self._mapped(guard(x, 1, "<=", x.shape[0], none), layer, end)
        here = packed = None
        if sizes is not None:
            here, places, packed = rnn.padding(sizes)
            x = rg.take(x, places, axis=0)
        names = ("weight_hh", "bias_hh", "weight_hr")
        weights = [self._of(name, layer, end) for name in names]
        kind, act, back = self.kind, self.nonlinearity, bool(end)
        y, last = _all_steps(kind, act, x, list(state), weights, here, back)
        if packed is not None:
            y = rg.take(rg.reshape(y, (-1, y.shape[-1])), packed, axis=0)
        return y, tuple(last)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._over_packed(input, hx)
        x = rg.asarray(input)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size or 0 in x.shape[:-1]:
            raise ShapeError(
                f"{self.kind} takes sequences [L, N, {self.input_size}], [N, L, "
                f"{self.input_size}] with batch_first, or [L, {self.input_size}], at least of "
                f"length 1, not the shape {x.shape}"
            )
        alone = x.ndim == 2
        if alone:
            x = rg.expand_dims(x, axis=1)
        elif self.batch_first:
            x = rg.swapaxes(x, 0, 1)
        x, final = self._layers(x, self._first(hx, x.shape[1], x, alone))
        if alone:
            x, final = x[:, 0], [h[:, 0] for h in final]
        elif self.batch_first:
            x = rg.swapaxes(x, 0, 1)
        return x, tuple(final) if self.kind == "LSTM" else final[0]

    def _over_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """The same over sequences of different lengths; states are in their own order."""
        x, sizes = rg.asarray(packed.data), packed.batch_sizes.tolist()
        if x.ndim != 2 or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self.kind} takes packed elements of size {self.input_size}, not the shape "
                f"{x.shape}"
            )
        first = self._first(hx, sizes[0], x, False)
        if packed.sorted_indices is not None:
            first = [rg.take(h, packed.sorted_indices, axis=1) for h in first]
        y, final = self._layers(x, first, sizes)
        if packed.unsorted_indices is not None:
            final = [rg.take(h, packed.unsorted_indices, axis=1) for h in final]
        return packed.with_data(y), tuple(final) if self.kind == "LSTM" else final[0]

    def _layers(
        self, x: Tensor, first: list[Tensor], sizes: list[int] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """All layers, over elements `[L, N, size]`, or packed ones in steps of these sizes; and the
        last states."""
        ends = ("", "_reverse") if self.bidirectional else ("",)
        last: list[State] = []
        for layer in range(self.num_layers):
            runs = []
            for end in ends:
                state = tuple(part[len(last)] for part in first)
                y, state = self._run(x, state, layer, end, sizes)
                runs.append(y)
                last.append(state)
            x = runs[0] if len(runs) == 1 else rg.concat(runs, axis=-1)
            if layer < self.num_layers - 1 and self.dropout:
                x = functional.dropout(x, self.dropout, self.training, generator=self.generator)
        return x, [rg.stack(part, axis=0) for part in zip(*last, strict=True)]

    def _first(self, hx: Any, batch: Any, x: Tensor, alone: bool) -> list[Tensor]:
        """The states to begin with, `[layers * directions, N, size]` each."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size]
        if self.kind == "LSTM":
            sizes.append(self.hidden_size)
        shapes = [(count, batch, size) for size in sizes]
        if hx is None:
            return [rg.zeros(shape, dtype=x.dtype) for shape in shapes]
        given = [rg.asarray(h) for h in (hx if self.kind == "LSTM" else (hx,))]
        given = [rg.expand_dims(h, axis=1) if alone else h for h in given]
        if [h.shape for h in given] != shapes:
            raise ShapeError(
                f"{self.kind}: states of the shapes {shapes} belong to an input of {x.shape}, not "
                f"{[h.shape for h in given]}"
            )
        return given

    def extra_repr(self) -> str:
        names = ("num_layers", "bias", "batch_first", "dropout", "bidirectional")
        return f"{self.input_size}, {self.hidden_size}, {shown(self, *names)}"


class RNN(_Recurrent):
    """`h[t] = act(W_ih x[t] + b_ih + W_hh h[t-1] + b_hh)` along sequences, in `num_layers` layers.

    The input is `[L, N, input_size]`, `[N, L, input_size]` with `batch_first`, or one sequence
    `[L, input_size]`. Returns all outputs `[L, N, D hidden_size]` and the last
    states `[D num_layers, N, hidden_size]`, D being 2 with `bidirectional`. `dropout` is that of
    what one layer gives to the next. Parameters are PyTorch's: `weight_ih_l0`, ...,
    `bias_hh_l0_reverse`. A `PackedSequence` gives one (`nn.utils.rnn`): each sequence ends, and in
    the other direction begins, at its own length.

    `ShapeError` for sizes below 1, and for inputs or states of other shapes, `OptionError` for a
    `nonlinearity` other than "tanh" and "relu".

    >>> import retrograd as rg
    >>> y, h = rg.nn.RNN(3, 5)(rg.ones((7, 2, 3)))
    >>> y.shape, h.shape
    ((7, 2, 5), (1, 2, 5))
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            nonlinearity=nonlinearity, generator=generator, dtype=dtype,
        )  # fmt: skip


class LSTM(_Recurrent):
    """Long short-term memory; arguments and results as those of `RNN`, pairs (h, c) for states.
    With `proj_size` h is projected to that size by `weight_hr`.

    `ShapeError` for sizes below 1, and for inputs or states of other shapes.

    >>> import retrograd as rg
    >>> y, (h, c) = rg.nn.LSTM(3, 5, num_layers=2)(rg.ones((7, 2, 3)))
    >>> y.shape, h.shape
    ((7, 2, 5), (2, 2, 5))
    """

    kind = "LSTM"


class GRU(_Recurrent):
    """Gated recurrent units; arguments and results as those of `RNN`.

    `[L, N, input_size]` to `[L, N, D hidden_size]` and the last states. `ShapeError` for sizes
    below 1, and for inputs or states of other shapes.

    >>> import retrograd as rg
    >>> y, h = rg.nn.GRU(3, 5)(rg.ones((7, 2, 3)))
    >>> y.shape, h.shape
    ((7, 2, 5), (1, 2, 5))
    """

    kind = "GRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            generator=generator, dtype=dtype,
        )  # fmt: skip


class _Cell(Module):
    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if min(input_size, hidden_size) < 1:
            raise ShapeError(f"{self.kind}Cell({input_size}, {hidden_size}): sizes are at least 1")
        self.input_size = input_size
        self.hidden_size = hidden_size
        gates, bound = GATES[self.kind] * hidden_size, 1 / math.sqrt(hidden_size)

        def drawn(*shape: int) -> Parameter:
            return Parameter(init.uniform(shape, -bound, bound, generator=generator, dtype=dtype))

        self.weight_ih = drawn(gates, input_size)
        self.weight_hh = drawn(gates, hidden_size)
        self.bias_ih = drawn(gates) if bias else None
        self.bias_hh = drawn(gates) if bias else None

    def _states(self, x: Tensor, hx: Any, count: int) -> State:
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self.kind}Cell takes [N, {self.input_size}] or [{self.input_size}], not the "
                f"shape {x.shape}"
            )
        shape = (*x.shape[:-1], self.hidden_size)
        if hx is None:
            return (rg.zeros(shape, dtype=x.dtype),) * count
        given = tuple(rg.asarray(h) for h in (hx if count > 1 else (hx,)))
        if len(given) != count or any(h.shape != shape for h in given):
            raise ShapeError(
                f"{self.kind}Cell: {count} of the shape {shape} belong to an input of {x.shape}, "
                f"not {[h.shape for h in given]}"
            )
        return given

    def _mapped(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight_ih, self.bias_ih)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, bias={self.bias_ih is not None}"


class RNNCell(_Cell):
    """One step of `RNN`: `[N, input_size]` and states `[N, hidden_size]` give new states.

    `ShapeError` for sizes below 1, and for inputs or states of other shapes, `OptionError` for
    another `nonlinearity`.

    >>> import retrograd as rg
    >>> rg.nn.RNNCell(3, 5)(rg.ones((2, 3))).shape
    (2, 5)
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        generator: Generator | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, generator=generator, dtype=dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise OptionError(f"an RNN's nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        x = rg.asarray(input)
        state = self._states(x, hx, 1)
        w, b = self.weight_hh, self.bias_hh
        return rnn_step(self._mapped(x), state, w, b, self.nonlinearity)[0]


class LSTMCell(_Cell):
    """One step of `LSTM`: `[N, input_size]` and (h, c) give new (h, c).

    `ShapeError` for sizes below 1, and for inputs or states of other shapes.

    >>> import retrograd as rg
    >>> h, c = rg.nn.LSTMCell(3, 5)(rg.ones((2, 3)))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    kind = "LSTM"

    def forward(self, input: Any, hx: Any = None) -> State:
        x = rg.asarray(input)
        return lstm_step(self._mapped(x), self._states(x, hx, 2), self.weight_hh, self.bias_hh)


class GRUCell(_Cell):
    """One step of `GRU`: `[N, input_size]` and states `[N, hidden_size]` give new states.

    `ShapeError` for sizes below 1, and for inputs or states of other shapes.

    >>> import retrograd as rg
    >>> rg.nn.GRUCell(3, 5)(rg.ones((2, 3))).shape
    (2, 5)
    """

    kind = "GRU"

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        x = rg.asarray(input)
        return gru_step(self._mapped(x), self._states(x, hx, 1), self.weight_hh, self.bias_hh)[0]
