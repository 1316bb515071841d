"""Methods of a tensor that convert it, and that make others like it: dtypes, `to`, `new_zeros`."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np

from retrograd import backend_registry
from retrograd.coming_from.keywords import respells
from retrograd.eager.conversion import as_array
from retrograd.eager.dispatch import ArrayLike, op_function
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.leaf import stands_for_any
from retrograd.eager.modes import current_backend
from retrograd.errors import OptionError, ShapeError
from retrograd.functions import elementwise as el
from retrograd.functions.broadcasting import as_node
from retrograd.functions.pytorch.shapes import sized
from retrograd.ir import (
    DType,
    TensorType,
    as_dtype,
    as_shape,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    full,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from retrograd.ops.identity import Alias
from retrograd.tensor_type import Tensor

# Builtins whose names are methods below.
Integer: TypeAlias = int
Truth: TypeAlias = bool
# Where other libraries put arrays; here there is one backend for a whole program.
DEVICES = ("cuda", "mps", "xpu", "hip", "xla", "meta", "ipu", "hpu", "mtia", "vulkan", "gpu", "tpu")


@op_function
def clone(x: ArrayLike, /, *, memory_format: Any = None) -> Any:
    """The same values as a tensor of its own, through which gradients flow; `detach` cuts them off.

    Shape and dtype stay. `DTypeError` for what is no array of numbers.

    >>> import retrograd as rg
    >>> rg.clone(rg.tensor([1.0])).tolist()
    [1.0]
    """
    return Alias()(as_node(x))


def is_device(x: Any) -> bool:
    """Whether something names a device, and not a dtype."""
    return isinstance(x, str) and (x.split(":")[0] == "cpu" or x.split(":")[0] in DEVICES)


def on_cpu(device: Any) -> None:
    """There is one place for tensors to be."""
    if device is not None and str(device).split(":")[0] != "cpu":
        raise OptionError(
            f"tensors are on the CPU, not on device {device!r}: a program runs on one backend, "
            'with rg.backend("..."); rg.backends() lists those that are available'
        )


class Conversions:
    """Conversions of dtype and place, and tensors like this one."""

    __slots__ = ()

    clone = copy = clone

    @respells
    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        copy: Truth = False,
        non_blocking: Truth = False,
    ) -> Tensor:
        """In another dtype: `x.to(rg.float64)`, `x.to("cpu", rg.float64)`, `x.to(other)`.

        The tensor itself where nothing changes, unless `copy`. For the device "cpu" it is fetched,
        as by `cpu()`; others are an `OptionError`: there is one backend for a program.
        """
        for a in args:
            if isinstance(a, LazyTensor):
                dtype = a.dtype
            elif is_device(a):
                device = a
            elif a is not None and not isinstance(a, Truth):
                dtype = a
        on_cpu(device)
        if device is not None:
            self.cpu()
        kind = self.dtype if dtype is None else as_dtype(dtype)  # type: ignore[attr-defined]
        return el.astype(self, kind, copy=copy)

    def _as(self, kind: DType) -> Tensor:
        return el.astype(self, kind, copy=False)

    def block_until_ready(self) -> Self:
        """Itself, once its value is computed, as in JAX."""
        self.computed()  # type: ignore[attr-defined]
        return self

    def float(self) -> Tensor:
        """In float32; itself if it is."""
        return self._as(float32)

    def double(self) -> Tensor:
        """In float64; itself if it is."""
        return self._as(float64)

    def half(self) -> Tensor:
        """In float16; itself if it is."""
        return self._as(float16)

    def bfloat16(self) -> Tensor:
        """In bfloat16; itself if it is."""
        return self._as(bfloat16)

    def int(self) -> Tensor:
        """In int32; itself if it is."""
        return self._as(int32)

    def long(self) -> Tensor:
        """In int64; itself if it is."""
        return self._as(int64)

    def short(self) -> Tensor:
        """In int16; itself if it is."""
        return self._as(int16)

    def char(self) -> Tensor:
        """In int8; itself if it is."""
        return self._as(int8)

    def byte(self) -> Tensor:
        """In uint8; itself if it is."""
        return self._as(uint8)

    def bool(self) -> Tensor:
        """Whether elements are not zero."""
        return self._as(bool_)

    def cfloat(self) -> Tensor:
        """In complex64; itself if it is."""
        return self._as(complex64)

    def cdouble(self) -> Tensor:
        """In complex128; itself if it is."""
        return self._as(complex128)

    @respells
    def type(self, dtype: Any) -> Tensor:
        """In another dtype."""
        return self._as(as_dtype(dtype))

    @respells
    def type_as(self, other: Any) -> Tensor:
        """In the dtype of another tensor."""
        return self._as(other.dtype)

    def cpu(self) -> Self:
        """This tensor, on the CPU: where a backend has it on its device, as `xla` and `wgpu` have
        what they compute, it is fetched, and all backends take it from then on."""
        x: Any = self
        there = backend_registry.is_device(current_backend())
        if x.is_computed or (there and not stands_for_any(x.node)):
            x.value()
        return self

    def contiguous(self, *, memory_format: Any = None) -> Self:
        """This tensor: elements are in row-major order."""
        return self

    def resolve_conj(self) -> Self:
        """This tensor: elements are what they are."""
        return self

    resolve_neg = resolve_conj

    def is_contiguous(self) -> Truth:
        """Whether elements are in row-major order: they are."""
        return True

    def is_floating_point(self) -> Truth:
        """Whether the dtype is floating."""
        return Truth(self.dtype.is_float)  # type: ignore[attr-defined]

    def is_complex(self) -> Truth:
        """Whether the dtype is complex."""
        return Truth(self.dtype.is_complex)  # type: ignore[attr-defined]

    def is_signed(self) -> Truth:
        """Whether the dtype has negative numbers."""
        return self.dtype.kind not in ("uint", "bool")  # type: ignore[attr-defined]

    def is_nonzero(self) -> Truth:
        """Whether the one element is not zero."""
        return Truth(self)

    def is_same_size(self, other: Any) -> Truth:
        """Whether another tensor has the same shape."""
        return Truth(self.shape == other.shape)  # type: ignore[attr-defined]

    @property
    def is_cpu(self) -> Truth:
        """Whether it is on the CPU: it is."""
        return True

    @property
    def is_cuda(self) -> Truth:
        """Whether it is on a graphics card: no tensor is; see `rg.backend`."""
        return False

    @property
    def is_sparse(self) -> Truth:
        """Whether only elements that are not zero are stored: all are."""
        return False

    @property
    def is_quantized(self) -> Truth:
        """Whether it is quantized: there are no such tensors."""
        return False

    def element_size(self) -> Integer:
        """The number of bytes of an element."""
        return Integer(self.dtype.itemsize)  # type: ignore[attr-defined]

    @property
    def itemsize(self) -> Integer:
        """The number of bytes of an element."""
        return self.element_size()

    @property
    def nbytes(self) -> Integer:
        """The number of bytes of all elements."""
        return self._type.size * self.element_size()  # type: ignore[attr-defined]

    @respells
    def new_full(
        self,
        size: Any,
        fill_value: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: Truth = False,
    ) -> Tensor:
        """A tensor of a shape with one value everywhere, in this dtype unless one is given."""
        on_cpu(device)
        if device is not None:
            self.cpu()
        kind = self.dtype if dtype is None else as_dtype(dtype)  # type: ignore[attr-defined]
        value = as_array(fill_value, kind)
        if value.ndim:
            raise ShapeError(f"new_full takes one number, not an array of shape {value.shape}")
        made: Any = LazyTensor.handle_class(full(value, TensorType(kind, as_shape(size))))
        return made.requires_grad_() if requires_grad else made

    @respells
    def new_zeros(
        self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: Truth = False
    ) -> Tensor:
        """Zeros of a shape, in this dtype unless one is given."""
        return self.new_full(
            sized(size), 0, dtype=dtype, device=device, requires_grad=requires_grad
        )

    new_empty = new_zeros

    @respells
    def new_ones(
        self, *size: Any, dtype: Any = None, device: Any = None, requires_grad: Truth = False
    ) -> Tensor:
        """Ones of a shape, in this dtype unless one is given."""
        return self.new_full(
            sized(size), 1, dtype=dtype, device=device, requires_grad=requires_grad
        )

    @respells
    def new_tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: Truth = False
    ) -> Tensor:
        """A tensor of data, in this dtype unless one is given."""
        on_cpu(device)
        if device is not None:
            self.cpu()
        kind = self.dtype if dtype is None else as_dtype(dtype)  # type: ignore[attr-defined]
        made: Any = LazyTensor.handle_class.of(np.array(as_array(data, kind)))
        return made.requires_grad_() if requires_grad else made
