"""Layers that learn the size of their input from the first one, under PyTorch's names."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import retrograd as rg
from retrograd.eager.modes import is_tracing
from retrograd.errors import ShapeError, TraceError
from retrograd.nn.layers.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from retrograd.nn.layers.linear import Linear
from retrograd.nn.layers.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from retrograd.nn.module.module import Module


class _Lazy(Module):
    """A layer that becomes another at its first call, in its place: an instance of `becomes`, whose
    arguments it takes but for the first."""

    _unfinished = True
    becomes: ClassVar[type[Module]]
    axis: ClassVar[int]  # of the input, whose size is the first argument of `becomes`
    defaults: ClassVar[dict[str, Any]] = {}  # where they are not those of `becomes`
    __signature__: ClassVar[inspect.Signature]  # type: ignore[misc]

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        _, *own = inspect.signature(cls.becomes).parameters.values()
        cls.__signature__ = inspect.Signature(
            [p.replace(default=cls.defaults.get(p.name, p.default)) for p in own]
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given = self.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        self.arguments = given.args
        self.options = given.kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        x = rg.asarray(args[0] if args else kwargs["input"])
        name = type(self).__name__
        if not -x.ndim <= self.axis < x.ndim:
            raise ShapeError(f"{name}: an input of the shape {x.shape} has no axis {self.axis}")
        if is_tracing():
            raise TraceError(
                f"{name} gets its parameters at its first call, which cannot be inside jit: call "
                "the model once before, on an example"
            )
        made = self.becomes(x.shape[self.axis], *self.arguments, **self.options)
        made.train(self.training)
        self.__dict__.clear()
        self.__dict__.update(made.__dict__)
        self.__class__ = self.becomes  # type: ignore[assignment] # which is what this class is for
        return self(*args, **kwargs)

    def extra_repr(self) -> str:
        return ", ".join(map(repr, self.arguments))


class LazyLinear(_Lazy):
    """A `Linear` whose `in_features` is the last size of its first input.

    Until then it has no parameters, and what asks for them (an optimizer, `jit`, `state_dict`) is
    refused: call the model once, on an example.

    `TraceError` where the first call is inside of `jit`, `ShapeError` for an input without that
    axis.

    >>> import retrograd as rg
    >>> layer = rg.nn.LazyLinear(4)
    >>> layer(rg.ones((2, 3))).shape
    (2, 4)
    >>> layer
    Linear(3, 4, bias=True)
    """

    becomes, axis = Linear, -1


class LazyConv1d(_Lazy):
    """A `Conv1d` whose `in_channels` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyConv1d(2, 3)(rg.ones((1, 5, 4))).shape
    (1, 2, 2)
    """

    becomes, axis = Conv1d, -2


class LazyConv2d(_Lazy):
    """A `Conv2d` whose `in_channels` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyConv2d(2, 3)(rg.ones((1, 5, 4, 4))).shape
    (1, 2, 2, 2)
    """

    becomes, axis = Conv2d, -3


class LazyConv3d(_Lazy):
    """A `Conv3d` whose `in_channels` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyConv3d(2, 3)(rg.ones((1, 5, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    becomes, axis = Conv3d, -4


class LazyConvTranspose1d(_Lazy):
    """A `ConvTranspose1d` whose `in_channels` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyConvTranspose1d(2, 3)(rg.ones((1, 5, 4))).shape
    (1, 2, 6)
    """

    becomes, axis = ConvTranspose1d, -2


class LazyConvTranspose2d(_Lazy):
    """A `ConvTranspose2d` whose `in_channels` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyConvTranspose2d(2, 3)(rg.ones((1, 5, 4, 4))).shape
    (1, 2, 6, 6)
    """

    becomes, axis = ConvTranspose2d, -3


class LazyConvTranspose3d(_Lazy):
    """A `ConvTranspose3d` whose `in_channels` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyConvTranspose3d(2, 3)(rg.ones((1, 5, 4, 4, 4))).shape
    (1, 2, 6, 6, 6)
    """

    becomes, axis = ConvTranspose3d, -4


class LazyBatchNorm1d(_Lazy):
    """A `BatchNorm1d` whose `num_features` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyBatchNorm1d()(rg.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    becomes, axis = BatchNorm1d, 1


class LazyBatchNorm2d(_Lazy):
    """A `BatchNorm2d` whose `num_features` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyBatchNorm2d()(rg.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    becomes, axis = BatchNorm2d, 1


class LazyBatchNorm3d(_Lazy):
    """A `BatchNorm3d` whose `num_features` are those of its first input; see `LazyLinear`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyBatchNorm3d()(rg.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    becomes, axis = BatchNorm3d, 1


LEARNED: dict[str, Any] = {"affine": True, "track_running_stats": True}


class LazyInstanceNorm1d(_Lazy):
    """An `InstanceNorm1d` whose `num_features` are those of its first input; see `LazyLinear`. As
    PyTorch's it is affine and tracks statistics by default, which `InstanceNorm1d` does not.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyInstanceNorm1d()(rg.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    becomes, axis, defaults = InstanceNorm1d, -2, LEARNED


class LazyInstanceNorm2d(_Lazy):
    """An `InstanceNorm2d` whose `num_features` are those of its first input; see
    `LazyInstanceNorm1d`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyInstanceNorm2d()(rg.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    becomes, axis, defaults = InstanceNorm2d, -3, LEARNED


class LazyInstanceNorm3d(_Lazy):
    """An `InstanceNorm3d` whose `num_features` are those of its first input; see
    `LazyInstanceNorm1d`.

    Shapes are those of that layer. `TraceError` where the first call is inside of `jit`,
    `ShapeError` for an input without that axis.

    >>> import retrograd as rg
    >>> rg.nn.LazyInstanceNorm3d()(rg.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    becomes, axis, defaults = InstanceNorm3d, -4, LEARNED
