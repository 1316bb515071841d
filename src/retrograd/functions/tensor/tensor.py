"""`Tensor`: an array that remembers how it was computed."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from retrograd.coming_from.keywords import respells
from retrograd.eager.backward import (
    RemovableHandle,
    backward,
    is_retained,
    register_on_leaf,
    registered,
    retain,
    warn_of_no_leaf,
)
from retrograd.eager.conversion import array_of, as_array, is_sought, number_of, scalar_of
from retrograd.eager.dispatch import operator, reflected
from retrograd.eager.fast_path import install
from retrograd.eager.immediate.install import install_immediate
from retrograd.eager.lazy_tensor import Array, LazyTensor, leaf
from retrograd.eager.listeners import is_held, listening
from retrograd.eager.modes import _GRAD, is_tracing, no_grad
from retrograd.eager.program_cache import GRADIENTS
from retrograd.eager.quick_dispatch import begin_run
from retrograd.eager.trace_buffer import CURRENT, TraceBuffer
from retrograd.eager.trace_cache import TraceNode
from retrograd.eager.weak_types import is_weak, weak, wide
from retrograd.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    OptionError,
    ShapeError,
    TraceError,
)
from retrograd.functions import (
    activations,
    contractions,
    indexing,
    manipulation,
    reductions,
    scans,
    scatter,
    sorting,
)
from retrograd.functions import complex as complex_parts
from retrograd.functions import elementwise as el
from retrograd.functions.dtypes import check_version
from retrograd.functions.tensor.conversions import Conversions
from retrograd.functions.tensor.device import CPU as CPU_DEVICE
from retrograd.functions.tensor.dlpack import CPU, exported
from retrograd.functions.tensor.html import donated, tensor_html, tensor_png
from retrograd.functions.tensor.inplace import (
    TEMPORARY,
    assign,
    change,
    check_changeable,
    check_is_held,
    stand_for,
    take,
)
from retrograd.functions.tensor.inplace_methods import InPlaceMethods
from retrograd.functions.tensor.namespace_methods import NamespaceMethods
from retrograd.functions.tensor.numpy_protocols import applied, called
from retrograd.functions.tensor.pytorch_methods import PyTorchMethods
from retrograd.functions.tensor.size import Size, SymbolicSize, size_of
from retrograd.ir import Dim, DType, Node
from retrograd.ops.identity import StopGradient
from retrograd.shared import completed


def _only_element(x: Tensor) -> Tensor | None:
    """The seed of a tensor of one element that is no scalar; None of any other."""
    shape = x._type.shape
    if not shape or not x._type.dtype.is_float:
        return None
    if any(not isinstance(n, int) or n != 1 for n in shape):
        return None
    return Tensor.of(np.ones(shape, x._type.dtype.dtype))


def _comparison(f: Callable[..., Any]) -> Callable[..., Any]:
    """`==` or `!=`, which Python answers by identity where the other is nothing to compute with."""

    def compare(self: Tensor, other: Any) -> Any:
        if isinstance(other, bool | int | float | complex | list | tuple | Dim) or hasattr(
            other, "__array__"
        ):
            return f(self, other)
        return NotImplemented

    return compare


class Tensor(LazyTensor, PyTorchMethods, InPlaceMethods, NamespaceMethods, Conversions):
    """An array with a history. Made by `rg.tensor`, and by operations on tensors.

    Operations check shapes and dtypes at once; numbers are computed when somebody looks at them,
    together with everything else that is needed. A tensor is a handle on a value: `x[0] = 1` and
    `x += 1` have it stand for another, which all who hold it see; slices taken before do not
    change. For a leaf that requires a gradient that is an error; inside of `no_grad` it gives the
    leaf another value, as an optimizer does.

    It has a `shape`, of integers and named sizes, and a `dtype`. An operation that does not fit is
    a `ShapeError` or a `DTypeError` at the line of the user; `backward()` without a gradient to
    give is a `GradientError`.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x, x.grad.tolist()
    (Tensor([1., 2.], dtype=float32, requires_grad=True), [2.0, 4.0])
    """

    __slots__ = ()

    # -- what is known without computing --------------------------------------------------------
    if TYPE_CHECKING:  # in a function that is traced a size may be a `Dim`, which does as an int

        @property
        def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size | SymbolicSize:
        """The number of elements. It may be called, as in PyTorch: `x.size()` is the shape,
        `x.size(0)` the size of an axis."""
        return size_of(self._type.shape)

    @property
    def device(self) -> str:
        """Where the elements are: on the CPU."""
        return CPU_DEVICE

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """This tensor, on a device: there is "cpu"."""
        if device != "cpu" or stream is not None:
            raise OptionError(f"tensors are on the CPU, not on device {device!r}")
        return self

    @property
    def requires_grad(self) -> bool:
        """Whether `backward()` computes a gradient with respect to this tensor: True for one made
        with `requires_grad=True`, such as the weights of a model, and for what is computed from
        such. False for data, whose gradients nobody needs. May be set."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @respells
    def requires_grad_(self, value: bool = True) -> Self:
        """Switch gradients on or off from here on; what was computed before is not affected.

        Switched on, a tensor that was computed becomes a leaf, unless it requires a gradient
        already. Switched off, a tensor that was computed becomes a constant. While it is switched
        off, `backward()` adds nothing to `.grad`.
        """
        if value and not self.dtype.is_inexact:
            raise GradientError(
                f"only floating tensors have gradients, not {self.dtype}; write 1.0 for 1, or give "
                "dtype=rg.float32"
            )
        if bool(value) != self._requires_grad:
            array = self.computed()  # wherever it is
            completed(lambda: self._require(bool(value), array))
        return self

    def _require(self, value: bool, array: Array) -> None:
        if self.is_dehydrated():
            self._hydrate()  # as a constant
        self._requires_grad = value
        self.become_leaf(array)

    @property
    def is_leaf(self) -> bool:
        """Whether `backward()` stops here: at tensors that were given rather than computed, and at
        those that do not require a gradient."""
        return not self._requires_grad or self.is_source

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward()` has accumulated; None before. It is a constant: it can be
        used in further computations, but for derivatives of it see `rg.grad`. It may be set, to
        None or to a tensor of this shape and dtype. Tensors that were computed have none, which a
        warning says, unless `retain_grad` was called."""
        found: Tensor | None = getattr(self, "_grad", None)
        if found is None and not self.retains_grad:
            warn_of_no_leaf(self)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        value = self._as_gradient(value)
        with GRADIENTS:  # not between a look at it by `backward()` and what that makes of it
            self._grad = value

    def _as_gradient(self, value: Any) -> Tensor | None:
        """What may be set as the gradient of this tensor."""
        if value is not None and not isinstance(value, Tensor):
            raise DTypeError(f"a gradient is a tensor or None, not {type(value).__name__}")
        if value is not None and (value.shape, value.dtype) != (self.shape, self.dtype):
            raise ShapeError(f"a gradient of {self._type} cannot be {value._type}")
        return value

    # -- the value ------------------------------------------------------------------------------
    def numpy(self, *, force: bool = False) -> Array:
        """The value as a NumPy array, read-only: it is the tensor's own memory.

        The array has no history, so that of a tensor which a transform differentiates is a
        `GradientError`, and so is to compute with that of another which requires a gradient, next
        to such tensors. Say `x.detach().numpy()` where a constant is meant. The same holds for
        `np.asarray(x)`. With `force` it is that of `x.detach()`.
        """
        return array_of(self.detach() if force else self, ".numpy()")

    def item(self, *at: int) -> Any:
        """The value of a tensor with one element, as a Python number; or, as in NumPy, that of an
        element at a place: `x.item(3)`, `x.item(0, 3)`.

        `loss.item()` may be used at any time, but not of what a transform is differentiating, as
        the number is a constant: a `GradientError`, unless it is detached. The same holds for
        `float(x)`, `int(x)` and `tolist()`.
        """
        array = number_of(self, ".item()")
        return array.item(*at) if at else self._number(array)

    def _number(self, array: Array) -> Any:
        if array.size != 1:
            raise ShapeError(f"item() needs a tensor with one element, not of shape {self.shape}")
        return array.item()

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        return number_of(self, ".tolist()").tolist()

    def detach(self) -> Tensor:
        """The same value, as a constant without history."""
        if is_weak(self._state):
            return Tensor(weak(StopGradient()(wide(self.leaf_or_node))))
        held = self._buffer.is_taped() or (listening() and is_held(self.leaf_or_node))
        if self.is_computed and not held:
            made = Tensor.of(self.value())
            if self.is_shared:
                made.share()
            return made
        return el.stop_gradient(self)._without_grad()

    @property
    def data(self) -> Tensor:
        """The value without its history, as `detach()` gives it, of which in-place operations
        change this tensor, too, also a leaf that requires a gradient: `p.data.fill_(0)`. It may be
        set, to a tensor of any shape. What was computed before is not affected.
        Slices of it are parts of this tensor: `p.data[2:4].fill_(1)`.

        `GradientError` to change a tensor that was computed and requires a gradient: its history
        would belong to another value.

        >>> import retrograd as rg
        >>> p = rg.tensor([1.0, 2.0], requires_grad=True)
        >>> p.data.mul_(10).tolist(), p.tolist()
        ([10.0, 20.0], [10.0, 20.0])
        """
        owner = weakref.ref(self)

        def change_owner(new: Tensor) -> None:
            x = owner()
            if x is not None:
                change_data(x, new)

        return DataOf.made(self.detach(), change_owner)

    @data.setter
    def data(self, value: Any) -> None:
        change_data(self, value)

    def _without_grad(self) -> Tensor:
        self._requires_grad = False
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is None and not self._type.rank:
            copy = True  # a number shares no memory worth having, and may be changed in place then
        return np.array(array_of(self, "an array"), dtype=dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The value for another library, in a capsule: what its `from_dlpack` asks for.

        A tensor does not change, and not all libraries respect that memory is read-only: it is
        exported as a copy. With `copy=False` it shares its memory from here on, as `rg.asarray`
        does: later operations use what is there when they are called. Raises `GradientError` if
        the tensor requires a gradient, which could not be followed (export `detach()`),
        `BufferError` for a device other than the CPU.
        """
        return exported(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    def __bool__(self) -> bool:
        if self._type.size != 1:
            raise ShapeError(
                f"whether a tensor of the shape {self.shape} is true is ambiguous; use .any() or "
                ".all()"
            )
        return bool(self._number(self.value()))

    def __int__(self) -> int:
        return int(self._number(scalar_of(self, "int()")))

    def __complex__(self) -> complex:
        return complex(self._number(scalar_of(self, "complex()")))

    def __float__(self) -> float:
        return float(self._number(scalar_of(self, "float()")))

    def __index__(self) -> int:
        if not self.dtype.is_integer or self.size != 1:  # Python asks, and goes on after TypeError
            raise TypeError(
                f"a {self.dtype} tensor of the shape {self.shape} is no index: that is one integer"
            )
        return int(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        """`round(x)` is Python's nearest integer of a single number, and `round(x, 2)` a tensor
        rounded to so many decimals; ties go to even."""
        if ndigits is None:
            return int(self._number(scalar_of(el.round(self), "round()")))
        return el.round(self * 10.0**ndigits) / 10.0**ndigits

    def __trunc__(self) -> int:
        return int(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        n = self.shape[0]
        return n.__index__()

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("a tensor without axes cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        if (gone := donated(self)) is not None:
            return f"Tensor(donated: {gone})"
        grad = ", requires_grad=True" if self._requires_grad else ""
        try:
            text = np.array2string(self.value(), separator=", ", prefix="Tensor(")
        except TraceError:
            return f"Tensor(traced {self._type}{grad})"
        shape = f", shape={self.shape}" if self.size == 0 and self.ndim > 1 else ""
        return f"Tensor({text}{shape}, dtype={self.dtype}{grad})"

    def _repr_html_(self) -> str:
        """What notebooks show: type, numbers, distribution, and matrices and images as pictures."""
        return tensor_html(self)

    def _repr_png_(self) -> bytes | None:
        """A matrix, or images, as a picture; None of other tensors."""
        return tensor_png(self)

    def __format__(self, spec: str) -> str:
        """A tensor with one element is formatted like its number: `f"{loss:.3f}"`."""
        if spec and self._type.size != 1:
            raise ArgumentError(
                f"the format {spec!r} is one of a number, and this is a tensor of the shape "
                f"{self.shape}; write {{x}} without a format, np.set_printoptions(precision=3), or "
                "format x.mean() or x.tolist()"
            )
        return format(self._number(self.value()), spec) if spec else str(self)

    def __hash__(self) -> int:
        return id(self)

    # -- copies: by value, so that a pickled tensor can be read elsewhere --------------------------
    def __getstate__(self) -> dict[str, Any]:
        if not self.is_leaf or is_sought(self):
            raise GradientError(
                f"a copy would lose the history of {self._node.describe()}; copy x.detach() for "
                "the value alone"
            )
        own: list[Any] = [
            c.__slots__ for c in type(self).__mro__ if issubclass(c, Tensor) and c is not Tensor
        ]
        attributes = {n: getattr(self, n) for names in own for n in names if hasattr(self, n)}
        attributes.update(getattr(self, "__dict__", {}))
        return {
            "array": self.value(),
            "name": self._node.name,
            "requires_grad": self._requires_grad,
            "grad": getattr(self, "_grad", None),
            "attributes": attributes,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        LazyTensor.__init__(self, leaf(state["array"], state["name"]), state["requires_grad"])
        self._grad = state["grad"]
        for name, value in state["attributes"].items():
            setattr(self, name, value)

    def __copy__(self) -> Tensor:
        """Another handle on the same value: a leaf of its own, or with the same history."""
        if not self.is_leaf or is_sought(self):
            return Tensor(self._node, True)
        new = type(self).__new__(type(self))
        new.__setstate__(self.__getstate__())
        return new

    # -- gradients ------------------------------------------------------------------------------
    @respells
    def backward(
        self, seed: Any = None, retain_graph: bool = False, *, gradient: Any = None
    ) -> None:
        """Add the gradient of this tensor to `.grad` of every leaf that requires one.

        A scalar starts from 1, and so does, as in PyTorch, a tensor of one element, say of the
        shape [1]; any other shape needs a `seed` of that shape, the cotangent, which PyTorch calls
        `gradient`. What is differentiated again is a function: see `rg.grad`.
        Afterwards this tensor is a constant without history, and a gradient that should go through
        it again is an error, unless `retain_graph`. Other results of the same computation keep
        their history.
        """
        seed = seed if gradient is None else gradient
        backward(self, _only_element(self) if seed is None else seed, retain_graph)

    def register_hook(self, hook: Callable[[Tensor], Any]) -> RemovableHandle:
        """Have `hook(gradient)` called when `backward()` has found the gradient of this tensor;
        what it returns, unless None, takes its place. Of a leaf that is the gradient of one
        `backward()`, before it is added; of a tensor that was computed, that of what is computed
        from it from here on. `remove()` of the result takes the hook back.

        `GradientError` for a tensor that requires no gradient; under `jit` and the like, where
        `rg.custom_vjp` is what changes a gradient on its way; and for what the hook returns if it
        is of another shape or dtype.

        >>> import retrograd as rg
        >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [20.0, 40.0]
        """
        if not self._requires_grad:
            raise GradientError(
                f"register_hook() of a tensor that requires no gradient: {self.node.describe()}"
            )
        if is_tracing() or is_sought(self):
            raise GradientError(
                "register_hook() inside of a function that is traced or differentiated; "
                "rg.custom_vjp changes a gradient on its way"
            )
        if self.is_source:
            return register_on_leaf(self, hook)
        known = _HOOKED.get(id(self))
        if known is not None and known.of() is self and known.node is self._state:
            return registered(known.hooks, hook)  # they are called in order
        hooks: dict[int, Any] = {}
        space = sys.modules["retrograd"]

        def bwd(kept: Any, g: Tensor) -> tuple[Tensor]:
            for each in list(hooks.values()):
                given = each(g.detach())
                g = g if given is None else given
            return (g,)

        hooked = space.custom_vjp(space.clone, lambda x: (space.clone(x), None), bwd)
        self.rebind(hooked(self))
        key = id(self)
        of = weakref.ref(self, lambda _: _HOOKED.pop(key, None))
        _HOOKED[key] = _Watched(of, self.node, hooks)
        return registered(hooks, hook)

    def retain_grad(self) -> None:
        """Have `backward()` add to `.grad` of this tensor, too, though it is not a leaf: the
        gradient of what is differentiated with respect to this value.

        >>> import retrograd as rg
        >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad
        Tensor([ 6., 12.], dtype=float32)
        """
        retain(self)

    @property
    def retains_grad(self) -> bool:
        """Whether `backward()` adds to `.grad` though this is not a leaf; see `retain_grad`."""
        return is_retained(self)

    def _change(self, operation: Callable[..., Any], other: Any) -> Any:
        """`self += other`."""
        return change(self, operation, other)

    def _take(self, new: Any) -> Any:
        """Stand for a result of another type, as far as that fits."""
        return take(self, new)

    # -- operators and methods: the functions of the same names -----------------------------------
    __array_priority__ = 1000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return applied(self.__array_namespace__(), ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if not all(issubclass(t, Tensor | np.ndarray) for t in types):
            return NotImplemented
        return called(self.__array_namespace__(), Tensor, function, args, options)

    __add__, __radd__ = operator(el.add), reflected(el.add)
    __sub__, __rsub__ = operator(el.subtract), reflected(el.subtract)
    __mul__, __rmul__ = operator(el.multiply), reflected(el.multiply)
    __truediv__, __rtruediv__ = operator(el.divide), reflected(el.divide)
    __floordiv__, __rfloordiv__ = operator(el.floor_divide), reflected(el.floor_divide)
    __mod__, __rmod__ = operator(el.remainder), reflected(el.remainder)
    __pow__, __rpow__ = operator(el.pow), reflected(el.pow)
    __matmul__, __rmatmul__ = operator(contractions.matmul), reflected(contractions.matmul)
    __and__, __rand__ = operator(el.bitwise_and), reflected(el.bitwise_and)
    __or__, __ror__ = operator(el.bitwise_or), reflected(el.bitwise_or)
    __xor__, __rxor__ = operator(el.bitwise_xor), reflected(el.bitwise_xor)
    __lshift__, __rlshift__ = operator(el.bitwise_left_shift), reflected(el.bitwise_left_shift)
    __rshift__, __rrshift__ = operator(el.bitwise_right_shift), reflected(el.bitwise_right_shift)
    if TYPE_CHECKING:  # whose base class says that they return a bool

        def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    else:
        __eq__, __ne__ = (
            _comparison(operator(el.equal)), _comparison(operator(el.not_equal))
        )  # fmt: skip
    __lt__, __le__ = operator(el.less), operator(el.less_equal)
    __gt__, __ge__ = operator(el.greater), operator(el.greater_equal)
    __pos__, __neg__, __abs__ = el.positive, el.negative, el.abs
    __invert__ = el.bitwise_invert

    abs, exp, log, sqrt, rsqrt, sin, cos, tanh = (
        el.abs, el.exp, el.log, el.sqrt, el.rsqrt, el.sin, el.cos, el.tanh
    )  # fmt: skip
    sigmoid, relu, erf, square, pow, sign = el.sigmoid, el.relu, el.erf, el.square, el.pow, el.sign
    floor, ceil, clip, astype = el.floor, el.ceil, el.clip, el.astype
    sum, prod, mean, var, std = (
        reductions.sum, reductions.prod, reductions.mean, reductions.var, reductions.std
    )  # fmt: skip
    max, min, any, all = reductions.max, reductions.min, reductions.any, reductions.all
    argmax, argmin, cumsum = reductions.argmax, reductions.argmin, scans.cumsum
    logsumexp, cumprod = reductions.logsumexp, scans.cumprod
    sort, argsort, topk, median, quantile = (
        sorting.sort, sorting.argsort, sorting.topk, sorting.median, sorting.quantile
    )  # fmt: skip
    softmax, log_softmax = activations.softmax, activations.log_softmax
    matmul, squeeze, expand_dims = (
        contractions.matmul,
        manipulation.squeeze,
        manipulation.expand_dims,
    )
    swapaxes = manipulation.swapaxes
    take, broadcast_to = indexing.take, manipulation.broadcast_to

    @respells
    def reshape(self, *shape: Any) -> Tensor:
        """`x.reshape(2, 3)` or `x.reshape((2, 3))`; one size may be -1."""
        one = len(shape) == 1 and not isinstance(shape[0], int | Dim)
        return manipulation.reshape(self, shape[0] if one else shape)

    def transpose(self, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> Tensor:
        """The axes reordered; reversed where none are given. Two of more axes are exchanged, as in
        PyTorch, where `x.transpose(0, 1)` of a matrix is an error: it is x in NumPy, x.T there."""
        if dim0 is not None and dim1 is not None:
            return manipulation.swapaxes(self, dim0, dim1)
        if len(axes) == 2 and self.ndim > 2:
            return manipulation.swapaxes(self, *axes)
        if len(axes) == 2 and self.ndim == 2 and axes in ((0, 1), (-2, -1), (0, -1), (-2, 1)):
            raise OptionError(
                f"x.transpose{axes} of a matrix is x itself in NumPy and x.T in PyTorch; write "
                "x.T, or x.permute(0, 1)"
            )
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return manipulation.permute_dims(self, order or tuple(reversed(range(self.ndim))))

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
        if self.ndim != 2:
            raise ShapeError(f".T is for matrices, not for shape {self.shape}; see permute_dims")
        return manipulation.matrix_transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return manipulation.matrix_transpose(self)

    @property
    def real(self) -> Tensor:
        """The real part."""
        return complex_parts.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part; zeros of real numbers."""
        return complex_parts.imag(self)

    def conj(self) -> Tensor:
        """The complex conjugate."""
        return complex_parts.conj(self)

    conjugate = conj

    def __getitem__(self, key: Any) -> Tensor:
        return indexing.picked(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """`x[key] = value`, for keys that `x[key]` takes and values that broadcast to it.

        All who hold this tensor see the change; slices that were taken before do not, nor what was
        computed before. Where index arrays name an element more than once the last value stays.
        The gradient is that of `x.at[key].set(value)`.

        `ShapeError` for a value that does not broadcast, `DTypeError` for one of another kind
        (floats into integers), `IndexError` for a key out of range or a mask of another shape.
        `GradientError` for a leaf that requires a gradient, outside of `no_grad`; `TraceError` for
        what was passed to a function that a transform calls, or captured by it. `TypeError` where
        nobody holds the tensor, as in `x[0][1] = 5`, which could have no effect: a slice has a
        value of its own.
        """
        if getrefcount(self) <= TEMPORARY:
            check_is_held()
        assign(self, key, value)

    @property
    def at(self) -> scatter.IndexUpdater:
        """`x.at[key].set(value)` and `x.at[key].add(value)`: a changed copy of x."""
        return scatter.IndexUpdater(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace of the array API: the package itself. It has what the versions of the
        standard say up to `__array_api_version__`."""
        check_version(api_version)
        return sys.modules["retrograd"]


LazyTensor.handle_class = Tensor
install(Tensor, TraceBuffer, TraceNode, Node, DType, CURRENT, _GRAD.get)
install_immediate(Tensor, begin_run)


class DataOf(Tensor):
    """`x.data`, or a part of it: a constant whose changes in place are changes of x."""

    __slots__ = ("_change_owner",)

    _change_owner: Callable[[Tensor], None]

    @classmethod
    def made(cls, value: Tensor, change_owner: Callable[[Tensor], None]) -> DataOf:
        """A handle on a constant, and what is told what it stands for after a change."""
        made: Any = cls.of(_NOTHING)
        made._change_owner = change_owner
        LazyTensor.rebind(made, value)
        return made

    def rebind(self, new: LazyTensor) -> None:
        """Stand for what a new handle does, and have the owner do so."""
        super().rebind(new)
        self._change_owner(self)

    def replace(self, array: Array) -> None:
        """Hold another array, as initial values are given, and have the owner do so."""
        super().replace(array)
        self._change_owner(self)

    def __getitem__(self, key: Any) -> Tensor:
        part = super().__getitem__(key)
        keys = key if isinstance(key, tuple) else (key,)
        if not all(k is None or k is ... or isinstance(k, int | slice) for k in keys):
            return part  # as in PyTorch, which copies then
        return DataOf.made(part, lambda new: self.__setitem__(key, new.detach()))

    def __setitem__(self, key: Any, value: Any) -> None:
        assign(self, key, value)

    def _assign(self, cls: type, key: Any, value: Any) -> bool:
        return False  # in memory: the owner would not know

    def __copy__(self) -> Tensor:
        return self.detach()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Tensor.detach, (self.detach(),)


_NOTHING = np.zeros(())


class _Watched(NamedTuple):
    """What was computed and has hooks, the node that calls them, and these."""

    of: weakref.ref[Tensor]
    node: Node
    hooks: dict[int, Any]


_HOOKED: dict[int, _Watched] = {}  # by id: equality of tensors is that of their elements


def change_data(x: Tensor, value: Any) -> None:
    """`x.data = value`."""
    if x._requires_grad and not x.is_source:
        raise GradientError(
            f"the data of {x._type}, which was computed and requires a gradient, cannot be changed:"
            " its history would belong to another value; write x = x.detach() first"
        )
    new = value.detach() if isinstance(value, Tensor) else Tensor.of(as_array(value).copy())
    with no_grad():
        check_changeable(x, "x = y")
    if x._requires_grad and not new.dtype.is_inexact:
        raise GradientError(f"only floating tensors have gradients, not {new.dtype}")
    x.own()
    stand_for(x, new)
