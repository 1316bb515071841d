"""Files of PyTorch, `.pt`, `.pth`, `.bin`: tensors in nested dictionaries and lists, read without
running anything they name, and written for `torch.load(weights_only=True)`.

The format is a zip archive (https://github.com/pytorch/pytorch/blob/main/torch/serialization.py):
`data.pkl`, a pickle in which tensors refer to storages by key, and a member for each storage; or,
before PyTorch 1.6, pickles one after the other, and then the storages.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np

from retrograd.eager.dispatch import as_array
from retrograd.eager.lazy_tensor import LazyTensor, evaluate
from retrograd.errors import DTypeError, FormatError
from retrograd.files import StrPath, read_bytes, write_atomically
from retrograd.functions.tensor.tensor import Tensor
from retrograd.io.archive import Archive, is_archive, packed
from retrograd.io.pickle_reader import Named, PickleReader, plain_key
from retrograd.io.safetensors import Array
from retrograd.ir.dtype import DTYPES

WHAT = "PyTorch file"
DEEPEST = 100  # containers within containers
LEGACY = 0x1950A86A20F9469CFC6C  # what a file of the old format begins with
# Bytes of tensors that are no parts of their storage as it is, such as expanded ones, beyond which
# a file is taken for a bomb: so many times its size, or this if that is more.
COPIED_RATIO, COPIED_BYTES = 8, 1 << 26

_BY_NAME = {d.name: d.dtype for d in DTYPES}
STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}
_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}


def load_pytorch(path: StrPath) -> Any:
    """What a file of PyTorch holds, such as a state dict: nested dictionaries, lists and tuples of
    tensors, numbers and texts.

    Nothing in the file is run: it may consist of tensors, their storages, `OrderedDict` and
    Python's own values; anything else, a module that was pickled whole for instance, is a
    `FormatError` that names it. So is a damaged, cut or foreign file. Files of both formats are
    read, those of PyTorch 1.6 and later, and those before. Parameters are tensors; the attributes
    of dictionaries are left out; a device or a dtype is its name.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.io import load_pytorch, save_pytorch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pytorch(folder + "/w.pt", {"w": rg.arange(3), "step": 7})
    ...     load_pytorch(folder + "/w.pt")
    {'w': Tensor([0, 1, 2], dtype=int64), 'step': 7}
    """
    return unpickled(read_bytes(path, WHAT), os.fspath(path))


def save_pytorch(path: StrPath, content: Any) -> None:
    """Write tensors or arrays, in nested dictionaries, lists and tuples, with numbers and texts, to
    a file that `torch.load(path, weights_only=True)` reads.

    The file appears whole or not at all; a tensor that occurs twice is stored once. Raises
    `DTypeError` for anything else, and an `OSError` that names the file and the remedy.

    >>> import retrograd as rg, tempfile
    >>> from retrograd.io import load_pytorch, save_pytorch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_pytorch(folder + "/w.pt", rg.nn.Linear(2, 1).state_dict())
    ...     sorted(load_pytorch(folder + "/w.pt"))
    ['bias', 'weight']
    """
    write_atomically(path, pickled(content), WHAT)


def save(obj: Any, f: StrPath | BinaryIO, **options: Any) -> None:
    """`torch.save`: write tensors, in nested dictionaries, lists and tuples, with numbers and
    texts, to a file or an open one, which `torch.load` reads, too. See `save_pytorch`.

    `DTypeError` for anything else. A model is saved by its state: `rg.save(model.state_dict(), f)`.

    >>> import io, retrograd as rg
    >>> file = io.BytesIO()
    >>> rg.save({"w": rg.ones(2), "step": 7}, file)
    >>> rg.load(io.BytesIO(file.getvalue()))
    {'w': Tensor([1., 1.], dtype=float32), 'step': 7}
    """
    if hasattr(obj, "state_dict"):
        kind = type(obj).__name__
        raise DTypeError(
            f"rg.save writes no {kind} itself, as code is not saved; write "
            f"rg.save(x.state_dict(), f), and x = {kind}(...); x.load_state_dict(rg.load(f))"
        )
    if hasattr(f, "write"):
        f.write(pickled(obj))
    else:
        save_pytorch(f, obj)


def load(
    f: StrPath | BinaryIO,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
) -> Any:
    """`torch.load`: what `save`, or PyTorch, has written to a file, or to an open one.

    The tensors are on the CPU whatever `map_location` says, and nothing in the file is run: one
    that holds more than tensors, numbers and texts is a `FormatError`, see `load_pytorch`.

    >>> import io, retrograd as rg
    >>> file = io.BytesIO()
    >>> rg.save([rg.arange(2)], file)
    >>> rg.load(io.BytesIO(file.getvalue()), map_location="cpu", weights_only=True)
    [Tensor([0, 1], dtype=int64)]
    """
    if hasattr(f, "read"):
        return unpickled(f.read(), str(getattr(f, "name", "the file")))
    return load_pytorch(f)


# -- reading -------------------------------------------------------------------------------------
class _Storage:
    """A storage of a file: its type, its name in it, and how many elements it should have."""

    def __init__(self, dtype: Any, key: str, size: int) -> None:
        self.dtype = dtype  # None: bytes of what a tensor says
        self.key = key
        self.size = size
        self.content: Any = None


class _Unpickler:
    """Makes what the pickle of a file describes. Tensors are made once all storages were read."""

    def __init__(self, file: str, size: int) -> None:
        self.file = file
        self.storages: dict[str, _Storage] = {}
        self.big_endian = False
        self._copied = max(COPIED_RATIO * size, COPIED_BYTES)

    def reader(self, content: bytes) -> PickleReader:
        """A reader of the file's pickles."""
        return PickleReader(content, self.file, self.makers(), _is_constant, self.storage)

    def error(self, what: str) -> FormatError:
        return FormatError(f"{self.file}: {what}. Use another copy of the file")

    def makers(self) -> dict[str, Callable[..., Any]]:
        """What a pickle may call."""
        rebuild = "torch._utils._rebuild_"
        return {
            "collections.OrderedDict": _ordered,
            rebuild + "tensor": self.tensor,
            rebuild + "tensor_v2": self.tensor,
            rebuild + "tensor_v3": self.typed_tensor,
            rebuild + "parameter": lambda data, *_: data,
            rebuild + "parameter_with_state": lambda data, *_: data,
            "torch.Size": lambda sizes=(): tuple(sizes),
            "torch.device": lambda *parts: ":".join(map(str, parts)),
            "torch.serialization._get_layout": str,
            "builtins.set": lambda items=(): set(map(plain_key, items)),
            "builtins.complex": complex,
            "__builtin__.set": lambda items=(): set(map(plain_key, items)),
            "__builtin__.complex": complex,
            "_codecs.encode": lambda text, _=None: text.encode("latin-1"),
        }

    def storage(self, pid: Any) -> _Storage:
        """The storage that a persistent id stands for: `("storage", type, key, device, size)`."""
        if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
            raise self.error(f"a storage is described by {pid!r:.80}")
        _, kind, key, _, size, *view = pid
        if view and view[0] is not None:
            raise self.error("a storage is part of another one, as in files of PyTorch before 0.4")
        name = kind.name.rpartition(".")[2] if isinstance(kind, Named) else ""
        if name != "UntypedStorage" and name not in STORAGES:
            raise self.error(
                f"a storage is a {kind!r:.60}, which retrograd does not compute with; it knows "
                f"{', '.join(STORAGES)}"
            )
        if not isinstance(key, str) or type(size) is not int or size < 0:
            raise self.error(f"a storage is described by {pid!r:.80}")
        dtype = _BY_NAME[STORAGES[name]] if name in STORAGES else None
        found = self.storages.setdefault(key, _Storage(dtype, key, size))
        if (found.dtype, found.size) != (dtype, size):
            raise self.error(f"the storage {key!r:.60} has two types or sizes")
        return found

    def tensor(
        self,
        storage: Any,
        offset: Any,
        shape: Any,
        strides: Any,
        requires_grad: Any = False,
        hooks: Any = None,
        metadata: Any = None,
    ) -> Callable[[], Array]:
        """A tensor: where its elements lie in a storage."""
        del requires_grad, hooks  # tensors of weights are leaves without hooks
        if not isinstance(storage, _Storage):
            raise self.error(f"the storage of a tensor is a {type(storage).__name__}")
        return self._made(storage, storage.dtype, offset, shape, strides, metadata)

    def typed_tensor(
        self,
        storage: Any,
        offset: Any,
        shape: Any,
        strides: Any,
        requires_grad: Any,
        hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Callable[[], Array]:
        """The same with a dtype that has no storage of its own."""
        del requires_grad, hooks
        name = dtype.name.removeprefix("torch.") if isinstance(dtype, Named) else ""
        if not isinstance(storage, _Storage) or name not in _BY_NAME:
            raise self.error(f"a tensor is of the type {dtype!r:.60}, which is not known")
        return self._made(storage, _BY_NAME[name], offset, shape, strides, metadata)

    def _made(
        self, storage: _Storage, dtype: Any, offset: Any, shape: Any, strides: Any, metadata: Any
    ) -> Callable[[], Array]:
        lists = (shape, strides)
        if not all(isinstance(x, tuple) and all(type(n) is int for n in x) for x in lists):
            raise self.error(f"a tensor has the shape {shape!r:.60} and strides {strides!r:.60}")
        place = (offset, *shape, *strides)
        if len(shape) != len(strides) or type(offset) is not int or min(place) < 0:
            raise self.error(f"a tensor has the shape {shape!r:.60} and strides {strides!r:.60}")
        if len(shape) > 32:
            raise self.error(f"a tensor has {len(shape)} axes")
        flags = metadata or {}
        if not isinstance(flags, dict) or not flags.keys() <= {"conj", "neg"}:
            raise self.error(f"a tensor has the properties {metadata!r:.60}, which are not known")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        width = dtype.itemsize if storage.dtype is None and dtype is not None else 1
        if dtype is None:
            raise self.error("a tensor of bytes does not say its type")
        if math.prod(shape) and (last + 1) * width > storage.size:
            raise self.error(
                f"a tensor of the shape {shape!r:.60} lies beyond the end of its storage of "
                f"{storage.size}"
            )
        return lambda: self._array(storage, dtype, offset, shape, strides, flags)

    def _array(
        self,
        storage: _Storage,
        dtype: Any,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        flags: dict[str, Any],
    ) -> Array:
        size = math.prod(shape)
        if size == 0:
            return np.zeros(shape, dtype)
        kind = dtype.newbyteorder(">") if self.big_endian and dtype.itemsize > 1 else dtype
        whole = np.frombuffer(storage.content, kind)
        if dtype == np.bool_:  # bytes that may be more than 1
            whole = whole.view(np.uint8) != 0
        if _is_packed(shape, strides):
            found = whole[offset : offset + size].reshape(shape)
        else:
            self._copied -= size * dtype.itemsize
            if self._copied < 0:
                raise self.error(
                    f"tensors that repeat elements, such as one of the shape {shape!r:.60}, are "
                    "many times as large as the file; it is taken for a bomb"
                )
            steps = [s * dtype.itemsize for s in strides]
            found = np.lib.stride_tricks.as_strided(whole[offset:], shape, steps, writeable=False)
            found = np.array(found, order="C")
        if flags.get("conj"):
            found = np.conj(found)
        if flags.get("neg"):
            found = -found
        return found.astype(dtype, copy=False)


def _ordered(items: Any = ()) -> dict[Any, Any]:
    return {plain_key(k): v for k, v in items}


def _is_constant(name: str) -> bool:
    """Names that are not called: storages, dtypes."""
    module, _, last = name.rpartition(".")
    if last.endswith("Storage"):
        return module in ("torch", "torch.storage", "torch.cuda")
    return module == "torch" and last in _TORCH_DTYPES


_TORCH_DTYPES = {
    *_BY_NAME, "half", "float", "double", "short", "int", "long", "cfloat", "cdouble", "complex32",
    "float8_e4m3fn", "float8_e5m2", "qint8", "quint8", "qint32", "strided", "sparse_coo",
}  # fmt: skip


def _is_packed(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements lie one after the other."""
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


def unpickled(content: bytes, file: str) -> Any:
    """What the bytes of a file hold."""
    made = _Unpickler(file, len(content))
    if is_archive(content):
        found = _from_archive(made, Archive(content, file))
    elif content[:1] == b"\x80":
        found = _from_legacy(made, content)
    elif content[257:262] == b"ustar":
        raise FormatError(
            f"{file} is a tar archive, as PyTorch wrote before version 0.2; load it with PyTorch "
            "and save it again"
        )
    else:
        raise FormatError(
            f"{file} is no PyTorch file: it begins with {content[:8]!r}, neither as a zip archive "
            "nor as a pickle"
        )
    return _Finished(made, len(content)).value(found, 0)


def _from_archive(made: _Unpickler, archive: Archive) -> Any:
    pickles = [n for n in archive.names() if n == "data.pkl" or n.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise FormatError(
            f"{made.file} is a zip archive, but no PyTorch file: it has {len(pickles)} members "
            f"called data.pkl; it holds {', '.join(archive.names()[:5])!r:.200}"
        )
    folder = pickles[0].removesuffix("data.pkl")
    if f"{folder}constants.pkl" in archive:
        raise FormatError(
            f"{made.file} is a TorchScript program; load it with torch.jit.load and save its "
            "state_dict()"
        )
    if f"{folder}byteorder" in archive:
        made.big_endian = archive.read(f"{folder}byteorder").strip() == b"big"
    reader = made.reader(archive.read(pickles[0]))
    found = reader.value()
    for key, storage in made.storages.items():
        name = f"{folder}data/{key}"
        if name not in archive:
            raise made.error(f"the storage {key!r:.60} is missing")
        size = storage.size * (storage.dtype.itemsize if storage.dtype else 1)
        if archive.size(name) != size:
            raise made.error(
                f"the storage {key!r:.60} should have {size} bytes, but has {archive.size(name)}"
            )
        storage.content = archive.read(name)
    return found


def _from_legacy(made: _Unpickler, content: bytes) -> Any:
    reader = made.reader(content)
    first = reader.value()
    if first != LEGACY:
        raise FormatError(
            f"{made.file} is a pickle, but no PyTorch file: it begins with a {type(first).__name__}"
        )
    version, system = reader.value(), reader.value()
    if version != 1001 or not isinstance(system, dict):
        raise made.error(f"its format is of version {version!r:.20}")
    made.big_endian = system.get("little_endian") is False
    found = reader.value()
    keys = reader.value()
    if not isinstance(keys, list):
        raise made.error("the list of its storages is missing")
    at = reader.at
    for key in keys:
        storage = made.storages.get(key) if isinstance(key, str) else None
        if storage is None or storage.content is not None:
            raise made.error(f"the storage {key!r:.60} belongs to no tensor")
        size = storage.size * (storage.dtype.itemsize if storage.dtype else 1)
        form = ">q" if made.big_endian else "<q"
        count = struct.unpack_from(form, content, at)[0] if at + 8 <= len(content) else -1
        if count != storage.size or at + 8 + size > len(content):
            raise made.error(f"the storage {key!r:.60} is damaged at byte {at}, or was cut")
        storage.content = memoryview(content)[at + 8 : at + 8 + size]
        at += 8 + size
    if missing := [k for k, s in made.storages.items() if s.content is None]:
        raise made.error(f"the storage {missing[0]!r:.60} is missing")
    return found


class _Finished:
    """Values with tensors in place of what makes them. Containers that occur often are shared in a
    pickle, so there may be far more values than the file has bytes: these are counted."""

    def __init__(self, made: _Unpickler, most: int) -> None:
        self.made = made
        self.left = most

    def value(self, x: Any, depth: int) -> Any:
        """One value, at a depth."""
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise self.made.error(
                f"containers are nested more than {DEEPEST} deep, or hold themselves"
            )
        if type(x) is dict:
            return {k: self.value(v, depth + 1) for k, v in x.items()}
        if type(x) in (list, tuple):
            return type(x)(self.value(v, depth + 1) for v in x)
        if isinstance(x, Named):
            return x.name
        if isinstance(x, _Storage):
            raise self.made.error("it holds a storage that belongs to no tensor")
        return self.tensor(x) if callable(x) else x

    def tensor(self, make: Callable[[], Array]) -> Tensor:
        """A tensor of its storage."""
        try:
            return Tensor.of(make())
        except FormatError:
            raise
        except (ValueError, OverflowError, TypeError) as error:  # sizes that no array has
            raise self.made.error(f"a tensor cannot be made ({error!s:.120})") from None


# -- writing -------------------------------------------------------------------------------------
def pickled(content: Any) -> bytes:
    """The bytes of a file."""
    writer = _Pickler()
    body = writer.value(content, "the file", 0)
    members = [("archive/data.pkl", b"\x80\x02" + body + b"."), ("archive/byteorder", b"little")]
    arrays = [np.asarray(a, a.dtype.newbyteorder("<"), order="C") for a in writer.arrays]
    members += [(f"archive/data/{i}", a.tobytes()) for i, a in enumerate(arrays)]
    return packed([*members, ("archive/version", b"3\n")])


class _Pickler:
    """Writes instructions of protocol 2; arrays of tensors are put aside."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._keys: dict[int, tuple[int, Any]] = {}  # by identity of the tensor, which is kept

    def value(self, x: Any, where: str, depth: int) -> bytes:
        """The instructions that make one value, and where it stands."""
        if depth > DEEPEST:
            raise DTypeError(f"{where[:80]} lies deeper than {DEEPEST} levels, or holds itself")
        if isinstance(x, LazyTensor | np.ndarray | np.generic):
            return self._tensor(x, where)
        if isinstance(x, Mapping):
            for key in x:
                if not isinstance(key, str | int):
                    raise DTypeError(f"{where} has the key {key!r:.60}; keys are texts or numbers")
            pairs = [
                self.value(k, where, depth) + self.value(v, f"{where}/{k}", depth + 1)
                for k, v in x.items()
            ]
            return b"}(" + b"".join(pairs) + b"u"
        if isinstance(x, list | tuple):
            items = b"".join(self.value(v, f"{where}/{i}", depth + 1) for i, v in enumerate(x))
            return b"](" + items + b"e" if isinstance(x, list) else b"(" + items + b"t"
        return _plain(x, where)

    def _tensor(self, x: Any, where: str) -> bytes:
        if isinstance(x, LazyTensor):
            evaluate([x])
        array = x.value() if isinstance(x, LazyTensor) else as_array(x)
        name = array.dtype.name
        key, _ = self._keys.setdefault(id(x), (len(self.arrays), x))
        if key == len(self.arrays):
            self.arrays.append(array)
        untyped = name not in _STORAGE_OF
        kind = "UntypedStorage" if untyped else _STORAGE_OF[name]
        module = "torch.storage" if untyped else "torch"
        size = array.nbytes if untyped else array.size
        storage = (_Global(module, kind), str(key), "cpu", size)
        strides, step = [], 1
        for n in reversed(array.shape):
            strides.append(step)
            step *= n
        place = (0, tuple(array.shape), tuple(reversed(strides)), False)
        rebuild = _Global("torch._utils", "_rebuild_tensor_v3" if untyped else "_rebuild_tensor_v2")
        hooks = _Global("collections", "OrderedDict").code + b")R"
        return (
            rebuild.code + b"((" + _plain("storage", where)
            + b"".join(s.code if isinstance(s, _Global) else _plain(s, where) for s in storage)
            + b"tQ" + b"".join(self.value(p, where, 0) for p in place) + hooks
            + (_Global("torch", name).code if untyped else b"") + b"tR"
        )  # fmt: skip


class _Global:
    """A name in a pickle."""

    def __init__(self, module: str, name: str) -> None:
        self.code = f"c{module}\n{name}\n".encode()


def _plain(x: Any, where: str) -> bytes:
    """The instructions for a value of Python."""
    if x is None or isinstance(x, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[x]
    if isinstance(x, int):
        if -(1 << 31) <= x < 1 << 31:
            return b"J" + struct.pack("<i", x)
        content = x.to_bytes(x.bit_length() // 8 + 1, "little", signed=True)
        if len(content) < 256:
            return b"\x8a" + bytes([len(content)]) + content
    if isinstance(x, float):
        return b"G" + struct.pack(">d", x)
    if isinstance(x, str):
        content = x.encode("utf-8", "surrogatepass")
        return b"X" + struct.pack("<I", len(content)) + content
    raise DTypeError(
        f"{where} is a {type(x).__name__}, which cannot be saved; give tensors, arrays, numbers, "
        "texts, None, or lists, tuples and dictionaries of them"
    )
