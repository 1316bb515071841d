"""A function of another library's arrays as one of tensors, with the derivatives that the other
library gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from retrograd import pytree
from retrograd.eager.lazy_tensor import Array, LazyTensor
from retrograd.errors import TraceError
from retrograd.functions.creation import asarray, zeros_like
from retrograd.functions.elementwise import stop_gradient
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import TensorType, as_dtype
from retrograd.shared import trim
from retrograd.tracing.scope import need_function
from retrograd.transforms.custom_rule_ops import ByValue
from retrograd.transforms.custom_rules import custom_vjp
from retrograd.transforms.pure_callback import pure_callback

KEPT = 256  # structures of arguments, and types, that are remembered of a function
Types = Sequence[TensorType]


class Library(Protocol):
    """What a library with automatic differentiation is asked for. Functions are of lists of its
    arrays and give lists of them."""

    def call(self, f: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
        """The function of NumPy arrays."""

    def trees(self, f: Callable[..., Any], structure: Any, rest: Sequence[Any]) -> Any:
        """The function of a list of arrays, and a list that gets the structure of its results."""

    def vjp(self, f: Callable[..., Any], count: int) -> Callable[..., Any]:
        """The function of `count` arguments and cotangents of all results that gives the cotangents
        of the arguments that are not discrete; differentiable itself."""

    def types(self, f: Callable[..., Any], types: Types) -> list[TensorType]:
        """The types of the results for those of the arguments."""


class ForeignFunction:
    """A function of another library on tensors of this one."""

    def __init__(self, f: Callable[..., Any], library: Library, what: str) -> None:
        need_function(f, what)
        self._f, self._library, self._what = f, library, what
        self.__name__ = getattr(f, "__name__", type(f).__name__)
        self.__doc__ = getattr(f, "__doc__", None)
        self._calls: dict[Any, _FlatFunction] = {}

    def __repr__(self) -> str:
        return f"<{self._what} of {self.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten((args, kwargs))
        at = [i for i, x in enumerate(leaves) if isinstance(x, LazyTensor) or is_array(x)]
        rest = [None if i in at else x for i, x in enumerate(leaves)]
        key = structure, tuple(map(ByValue, rest))
        call = self._calls.get(key)
        if call is None:
            flat, form = self._library.trees(self._f, structure, rest)
            call = self._calls[key] = _FlatFunction(flat, self._library, self.__name__, form)
            trim(self._calls, KEPT)
        given = [leaves[i] for i in at]
        found = call(*[x if isinstance(x, LazyTensor) else asarray(x) for x in given])
        return pytree.unflatten(call.form[0], found)


def is_array(x: Any) -> bool:
    """Whether something holds numbers with a shape, and is no number of Python's."""
    return hasattr(x, "__array__") and hasattr(x, "dtype") and hasattr(x, "shape")


class _FlatFunction:
    """The same of a list of tensors, that gives a list of them; `types` are those of the results,
    where they are known without asking. It is linear in the arguments from `linear` on, if any."""

    def __init__(
        self, f: Callable[..., Any], library: Library, name: str, form: list[Any],
        types: Callable[..., list[TensorType]] | None = None, linear: int | None = None,
    ) -> None:  # fmt: skip
        self.form = form
        self._f, self._library, self._name = f, library, name
        self._given_types, self._linear = types, linear
        self._types: dict[Any, list[TensorType]] = {}
        self._slopes: _FlatFunction | None = None
        self._host = lambda *arrays: library.call(f, arrays)

        def called(*xs: Tensor) -> Any:
            types = self._types_for(xs)
            # Forward mode walks through this, too, and takes the rule's answer.
            return pure_callback(self._host, types, *map(stop_gradient, xs), name=name)

        self._rule = custom_vjp(called, lambda *xs: (self._rule(*xs), xs), self._backward)

    def __call__(self, *xs: Any) -> list[Tensor]:
        found: list[Tensor] = self._rule(*xs)
        return found

    def _types_for(self, xs: Sequence[Tensor]) -> list[TensorType]:
        key = tuple([x._type for x in xs])
        found = self._types.get(key)
        if found is not None:
            return found
        if self._given_types is not None:
            return self._given_types(*key)
        try:
            found = self._types[key] = self._library.types(self._f, key)
            trim(self._types, KEPT)
            return found
        except Exception as error:  # whatever the function does with what has no values
            return self._types_by_values(xs, error)

    def _types_by_values(self, xs: Sequence[Tensor], error: Exception) -> list[TensorType]:
        """The types of the results for these arguments, which they may depend on."""
        try:
            arrays = [x.detach().value() for x in xs]
        except TraceError:
            raise TraceError(
                f"{self._name} cannot be traced: the types of its results could not be found "
                f"without the values of its arguments ({type(error).__name__}: {error})"
            ) from error
        found = self._library.call(self._f, [a.copy() for a in arrays])
        return [TensorType(as_dtype(y.dtype), y.shape) for y in found]

    def _backward(self, xs: Sequence[Tensor], g: Sequence[Tensor]) -> tuple[Any, ...]:
        if self._slopes is None:
            count = len(xs)
            self._slopes = _FlatFunction(
                self._library.vjp(self._f, count), self._library, f"{self._name}_vjp", [],
                lambda *types: [t for t in types[:count] if t.dtype.is_inexact], count,
            )  # fmt: skip
        found, first = self._cotangents(xs, g), self._linear
        if first is not None:  # that the slope does not depend on these, the other mode relies on
            at_zero = [*xs[:first], *map(zeros_like, xs[first:])]
            found = [*found[:first], *self._cotangents(at_zero, g)[first:]]
        return tuple(found)

    def _cotangents(self, xs: Sequence[Tensor], g: Sequence[Tensor]) -> list[Tensor | None]:
        assert self._slopes is not None
        found = iter(self._slopes(*xs, *g))
        return [next(found) if x.dtype.is_inexact else None for x in xs]
