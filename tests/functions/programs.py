"""Random programs of the public functions, each with the same program in NumPy.

A program is a list of steps; a step applies a function to earlier values. Every choice comes from
one random generator, so a seed names a program.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

import retrograd as rg

Random = np.random.Generator


class Step(NamedTuple):
    """One line of a program: `of_tensors` and `of_arrays` mean the same."""

    text: str
    inputs: tuple[int, ...]
    of_tensors: Callable[..., Any]
    of_arrays: Callable[..., Any]


class Program:
    """Steps from a list of inputs to one value, which is the last."""

    def __init__(self, inputs: Sequence[np.ndarray], steps: Sequence[Step]) -> None:
        self.inputs = list(inputs)
        self.steps = list(steps)

    def values(self, inputs: Sequence[Any], tensors: bool = True) -> list[Any]:
        """Every value of the program."""
        values = list(inputs)
        for step in self.steps:
            f = step.of_tensors if tensors else step.of_arrays
            values.append(f(*[values[i] for i in step.inputs]))
        return values

    def __call__(self, *inputs: Any) -> Any:
        return self.values(inputs)[-1]

    def loss(self, *inputs: Any) -> Any:
        """A smooth scalar that depends on all elements of the last value."""
        return rg.sum(rg.sin(self(*inputs) + 0.3))

    def __str__(self) -> str:
        n = len(self.inputs)
        head = [f"v{i} = input {x.shape} {x.dtype}" for i, x in enumerate(self.inputs)]
        body = [
            f"v{n + k} = {s.text}({', '.join(f'v{i}' for i in s.inputs)})"
            for k, s in enumerate(self.steps)
        ]
        return "\n".join(head + body)


def pick(rng: Random, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def axes_of(rng: Random, rank: int) -> Any:
    """An axis, some axes, or None for all."""
    if rank == 0 or rng.random() < 0.3:
        return None
    if rng.random() < 0.5:
        return int(rng.integers(-rank, rank))
    count = int(rng.integers(1, rank + 1))
    return tuple(int(a) for a in rng.permutation(rank)[:count])


# -- one function for each kind of step: (text, function of tensors, function of arrays) -----------

UNARY = {
    "sin": (rg.sin, np.sin),
    "tanh": (rg.tanh, np.tanh),
    "exp_tanh": (lambda x: rg.exp(rg.tanh(x)), lambda x: np.exp(np.tanh(x))),
    "sigmoid": (rg.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "softplus": (rg.softplus, lambda x: np.logaddexp(x, 0)),
    "square": (rg.square, np.square),
    "negative": (lambda x: -x, np.negative),
    "root": (lambda x: rg.sqrt(rg.abs(x) + 0.5), lambda x: np.sqrt(np.abs(x) + 0.5)),
    "log": (lambda x: rg.log(x * x + 0.5), lambda x: np.log(x * x + 0.5)),
    "rsqrt": (lambda x: rg.rsqrt(x * x + 1), lambda x: 1 / np.sqrt(x * x + 1)),
    "cube": (lambda x: rg.tanh(x) ** 3, lambda x: np.tanh(x) ** 3),
    "gelu": (lambda x: rg.gelu(x, "tanh"), lambda x: _gelu(x)),
    "silu": (rg.silu, lambda x: x / (1 + np.exp(-x))),
    "expm1": (lambda x: rg.expm1(rg.sin(x)), lambda x: np.expm1(np.sin(x))),
    "log1p": (lambda x: rg.log1p(x * x), lambda x: np.log1p(x * x)),
    "atan": (rg.atan, np.arctan),
    "scaled": (lambda x: 0.7 * x - 1.25, lambda x: 0.7 * x - 1.25),
    "reflected": (lambda x: 2 - x / 3, lambda x: 2 - x / 3),
    "power": (lambda x: 1.5**x, lambda x: 1.5**x),
    "stop_some": (lambda x: x * 1.0, lambda x: x * 1.0),
}
BINARY = {
    "add": (lambda a, b: a + b, np.add),
    "subtract": (lambda a, b: a - b, np.subtract),
    "multiply": (lambda a, b: a * b, np.multiply),
    "divide": (lambda a, b: a / (b * b + 1), lambda a, b: a / (b * b + 1)),
    "maximum": (rg.maximum, np.maximum),
    "minimum": (rg.minimum, np.minimum),
    "hypot": (lambda a, b: rg.hypot(a, b + 3), lambda a, b: np.hypot(a, b + 3)),
    "atan2": (lambda a, b: rg.atan2(a, b * b + 1), lambda a, b: np.arctan2(a, b * b + 1)),
    "logaddexp": (rg.logaddexp, np.logaddexp),
    "where": (lambda a, b: rg.where(a > b, a, 2 * b), lambda a, b: np.where(a > b, a, 2 * b)),
    "pow": (
        lambda a, b: (rg.abs(a) + 0.5) ** rg.tanh(b),
        lambda a, b: (np.abs(a) + 0.5) ** np.tanh(b),
    ),
}


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def unary(rng: Random, x: np.ndarray) -> Any:
    name = pick(rng, list(UNARY))
    return (name, *UNARY[name])


def binary(rng: Random, a: np.ndarray, b: np.ndarray) -> Any:
    name = pick(rng, list(BINARY))
    return (name, *BINARY[name])


def reduction(rng: Random, x: np.ndarray) -> Any:
    axis, keep = axes_of(rng, x.ndim), bool(rng.random() < 0.4)
    name = pick(rng, ["sum", "mean", "max", "min", "prod", "var", "logsumexp", "norm"])
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    shape = [x.shape[a] for a in axes]
    if 0 in shape and name in ("max", "min", "mean", "var", "logsumexp"):
        name = "sum"
    text = f"{name}[{axis}, {keep}]"
    if name == "prod":
        return (
            text,
            lambda x: rg.prod(rg.tanh(x), axis=axis, keepdims=keep),
            lambda x: np.prod(np.tanh(x), axis=axis, keepdims=keep),
        )
    if name == "logsumexp":
        return (
            text,
            lambda x: rg.logsumexp(x, axis=axis, keepdims=keep),
            lambda x: np.log(np.sum(np.exp(x), axis=axis, keepdims=keep)),
        )
    if name == "norm":
        return (
            text,
            lambda x: rg.vector_norm(x, axis=axis, keepdims=keep),
            lambda x: np.sqrt(np.sum(x * x, axis=axis, keepdims=keep)),
        )
    return (
        text,
        lambda x: getattr(rg, name)(x, axis=axis, keepdims=keep),
        lambda x: getattr(np, name)(x, axis=axis, keepdims=keep),
    )


def movement(rng: Random, x: np.ndarray) -> Any:
    kind = pick(rng, ["reshape", "permute", "expand", "flip", "roll", "pad", "tile", "repeat",
                      "tril", "broadcast", "squeeze", "swap", "move", "split", "flat"])  # fmt: skip
    n = x.ndim
    if kind == "reshape":
        parts = [1, *x.shape]
        shape = tuple(int(d) for d in rng.permutation(parts))
        if x.size:
            shape = tuple(-1 if i == 0 else d for i, d in enumerate(shape))
        return f"reshape[{shape}]", lambda x: x.reshape(shape), lambda x: x.reshape(shape)
    if kind == "flat":
        return "flatten", lambda x: rg.reshape(x, x.size), lambda x: x.reshape(x.size)
    if kind == "permute" and n:
        axes = tuple(int(a) for a in rng.permutation(n))
        return f"permute[{axes}]", lambda x: rg.permute_dims(x, axes), lambda x: x.transpose(axes)
    if kind == "expand":
        at = int(rng.integers(-n - 1, n + 1))
        return (
            f"expand_dims[{at}]",
            lambda x: rg.expand_dims(x, at),
            lambda x: np.expand_dims(x, at),
        )
    if kind == "squeeze":
        return "squeeze", rg.squeeze, np.squeeze
    if kind == "flip":
        axis = axes_of(rng, n)
        return f"flip[{axis}]", lambda x: rg.flip(x, axis=axis), lambda x: np.flip(x, axis)
    if kind == "roll" and n:
        axis, by = int(rng.integers(-n, n)), int(rng.integers(-4, 5))
        return f"roll[{by}, {axis}]", lambda x: rg.roll(x, by, axis), lambda x: np.roll(x, by, axis)
    if kind == "pad" and n:
        width = [tuple(int(w) for w in rng.integers(0, 3, 2)) for _ in range(n)]
        return (
            f"pad[{width}]",
            lambda x: rg.pad(x, width, value=0.5),
            lambda x: np.pad(x, width, constant_values=0.5),
        )
    if kind == "tile":
        times = tuple(int(t) for t in rng.integers(1, 3, n + int(rng.integers(2))))
        return f"tile[{times}]", lambda x: rg.tile(x, times), lambda x: np.tile(x, times)
    if kind == "repeat" and n:
        axis = int(rng.integers(-n, n))
        return f"repeat[{axis}]", lambda x: rg.repeat(x, 2, axis), lambda x: np.repeat(x, 2, axis)
    if kind == "tril" and n > 1:
        k, upper = int(rng.integers(-2, 3)), rng.random() < 0.5
        f, g = (rg.triu, np.triu) if upper else (rg.tril, np.tril)
        return f"tri[{k}, {upper}]", lambda x: f(x, k=k), lambda x: g(x, k)
    if kind == "broadcast":
        shape = (int(rng.integers(1, 4)), *(3 if d == 1 else d for d in x.shape))
        return (
            f"broadcast_to[{shape}]",
            lambda x: rg.broadcast_to(x, shape),
            lambda x: np.broadcast_to(x, shape).copy(),
        )
    if kind == "swap" and n > 1:
        return "mT", lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2)
    if kind == "move" and n:
        a, b = (int(i) for i in rng.integers(-n, n, 2))
        return f"moveaxis[{a}, {b}]", lambda x: rg.moveaxis(x, a, b), lambda x: np.moveaxis(x, a, b)
    if kind == "split" and n and x.shape[0] > 1:
        at = int(rng.integers(1, x.shape[0]))
        return (
            f"split[{at}]",
            lambda x: rg.split(x, [at, x.shape[0] - at])[1],
            lambda x: np.split(x, [at])[1],
        )
    return "same", lambda x: x, lambda x: x


def key_of(rng: Random, shape: tuple[int, ...]) -> Any:
    """An index: integers, slices, new axes, `...` and integer arrays."""
    key: list[Any] = []
    arrays = rng.random() < 0.4
    length = int(rng.integers(1, 4))
    for n in shape[: int(rng.integers(len(shape) + 1))]:
        kind = rng.random()
        if kind < 0.2 and n:
            key.append(int(rng.integers(-n, n)))
        elif kind < 0.5 and arrays and n:
            size: tuple[int, ...] = (length,) if rng.random() < 0.7 else (2, 1)
            key.append(rng.integers(-n, n, size))
        else:
            ends = rng.integers(-n - 1, n + 2, 2)
            start, stop = (None if rng.random() < 0.3 else int(v) for v in ends)
            step = int(pick(rng, [1, 1, 2, -1, -2]))
            key.append(slice(start, stop, step))
        if rng.random() < 0.15:
            key.append(None)
    if rng.random() < 0.2:
        key.append(...)
    return tuple(key)


def indexing(rng: Random, x: np.ndarray) -> Any:
    kind = pick(rng, ["getitem", "getitem", "getitem", "take", "along", "cumsum", "mask",
                      "set", "add"])  # fmt: skip
    n = x.ndim
    if kind == "getitem":
        key = key_of(rng, x.shape)
        return f"getitem[{key}]", lambda x: x[key], lambda x: x[key]
    if kind in ("set", "add") and n:
        key = tuple(k for k in key_of(rng, x.shape) if k is not None)

        def changed(x: np.ndarray) -> np.ndarray:
            y = x.copy()
            y[key] = 0.25 if kind == "set" else y[key]
            if kind == "add":
                np.add.at(y, key, 0.25)
            return y

        if kind == "set":
            return f"at[{key}].set", lambda x: rg.asarray(x).at[key].set(0.25), changed
        return f"at[{key}].add", lambda x: rg.asarray(x).at[key].add(0.25), changed
    if kind == "take" and n and 0 not in x.shape:
        axis = int(rng.integers(-n, n))
        i = rng.integers(0, x.shape[axis], tuple(rng.integers(0, 3, int(rng.integers(3)))))
        return f"take[{axis}]", lambda x: rg.take(x, i, axis=axis), lambda x: np.take(x, i, axis)
    if kind == "along" and n and 0 not in x.shape:
        axis = int(rng.integers(-n, n))
        i = np.argsort(rng.random(x.shape), axis)
        return (
            f"take_along_axis[{axis}]",
            lambda x: rg.take_along_axis(x, i, axis=axis),
            lambda x: np.take_along_axis(x, i, axis),
        )
    if kind == "mask" and n:
        m = rng.random(x.shape[: int(rng.integers(1, n + 1))]) < 0.6
        return "mask", lambda x: x[m], lambda x: x[m]
    if kind == "cumsum" and n:
        axis = int(rng.integers(-n, n))
        return (
            f"cumulative_sum[{axis}]",
            lambda x: rg.cumulative_sum(x, axis=axis),
            lambda x: np.cumsum(x, axis),
        )
    return "same", lambda x: x, lambda x: x


def product(rng: Random, a: np.ndarray, b: np.ndarray) -> Any:
    """A matrix product in one of its shapes; operands are reshaped until they fit."""
    m, k = a.reshape(-1, a.shape[-1]).shape if a.ndim and a.size else (0, 0)
    kind = pick(rng, ["gram", "outer", "einsum", "bmm", "vecdot", "softmax", "norm"])
    if kind == "gram" and m:
        return (
            "gram",
            lambda a, b: rg.reshape(a, (m, k)) @ rg.reshape(a, (m, k)).mT,
            lambda a, b: a.reshape(m, k) @ a.reshape(m, k).T,
        )
    if kind == "outer":
        return (
            "outer",
            lambda a, b: rg.outer(rg.reshape(a, -1)[:3], rg.reshape(b, -1)[:3]),
            lambda a, b: np.outer(a.reshape(-1)[:3], b.reshape(-1)[:3]),
        )
    if kind == "einsum" and m:
        return (
            "einsum[ij,ik->kj]",
            lambda a, b: rg.einsum("ij,ik->kj", rg.reshape(a, (m, k)), rg.reshape(a, (m, k)) * 0.5),
            lambda a, b: np.einsum("ij,ik->kj", a.reshape(m, k), a.reshape(m, k) * 0.5),
        )
    if kind == "bmm" and m:
        return (
            "bmm",
            lambda a, b: rg.reshape(a, (m, 1, k)) @ rg.reshape(a, (1, m, k)).mT,
            lambda a, b: a.reshape(m, 1, k) @ np.swapaxes(a.reshape(1, m, k), -1, -2),
        )
    if kind == "softmax" and a.ndim and a.shape[-1]:
        return (
            "softmax",
            lambda a, b: rg.softmax(a) + rg.log_softmax(a),
            lambda a, b: _softmax(a) + np.log(_softmax(a)),
        )
    if kind == "norm" and a.ndim and a.shape[-1]:
        return (
            "rms_norm",
            lambda a, b: rg.rms_norm(a),
            lambda a, b: a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5),
        )
    if kind == "vecdot" and a.ndim:
        return (
            "vecdot",
            lambda a, b: rg.vecdot(a, a, axis=-1),
            lambda a, b: (a * a).sum(-1),
        )
    return "same", lambda a, b: a, lambda a, b: a


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def joining(rng: Random, a: np.ndarray, b: np.ndarray) -> Any:
    if rng.random() < 0.5:
        return (
            "concat[None]",
            lambda a, b: rg.concat([a, b], axis=None),
            lambda a, b: np.concatenate([a, b], axis=None),
        )
    axis = int(rng.integers(0, a.ndim + 1))
    return (
        f"stack[{axis}]",
        lambda a, b: rg.stack([a, a * 2.0], axis=axis),
        lambda a, b: np.stack([a, a * 2.0], axis=axis),
    )


ONE = [unary, reduction, movement, indexing]
TWO = [binary, product, joining]


def random_program(seed: int, dtype: Any = np.float64, length: int = 8) -> Program:
    """The program of a seed: at most `length` steps on values of at most 200 elements."""
    rng = np.random.default_rng(seed)
    empty = 0.06 if rng.random() < 0.2 else 0.0  # programs on arrays of no elements are rare
    inputs = []
    for _ in range(int(rng.integers(1, 4))):
        rank = int(rng.integers(0, 4))
        shape = tuple(0 if rng.random() < empty else int(rng.integers(1, 4)) for _ in range(rank))
        inputs.append(rng.normal(size=shape).astype(dtype))
    values = list(inputs)
    steps: list[Step] = []
    while len(steps) < length:
        two = rng.random() < 0.4
        make = pick(rng, TWO if two else ONE)
        latest = len(values) - 1 - int(rng.integers(0, min(3, len(values))))
        chosen = (latest, int(rng.integers(len(values)))) if two else (latest,)
        if make is binary and not _broadcasts(*[values[i] for i in chosen]):
            continue
        text, f, g = make(rng, *[values[i] for i in chosen])
        value = np.asarray(g(*[values[i] for i in chosen]))
        if value.size > 200 or value.ndim > 5 or not np.all(np.abs(value) < 1e3) or text == "same":
            continue
        values.append(value)
        steps.append(Step(text, chosen, f, g))
    return Program(inputs, steps)


def _broadcasts(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True
