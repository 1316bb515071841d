"""Files of PyTorch: those in `tests/fixtures/pytorch` were written by PyTorch 2.13 from the values
below, and are read without it."""

import io
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg
from retrograd.errors import DTypeError, FormatError
from retrograd.io import load_pytorch, save_pytorch
from retrograd.io.archive import packed
from retrograd.io.pytorch import pickled, unpickled

FIXTURES = Path(__file__).parents[1] / "fixtures" / "pytorch"
BASE = np.arange(12, dtype=np.float32).reshape(3, 4)
TENSORS = {
    "w": BASE.T[1:], "row": BASE[1], "same": BASE, "expanded": np.ones((2, 3), np.float32),
    "b": np.array([1.5, -2.0], rg.bfloat16.dtype), "c": np.array([1 - 2j, 3], np.complex64),
    "mask": np.array([True, False]), "u": np.array([1, 65535], np.uint16),
    "empty": np.zeros((0, 3), np.float32), "scalar": np.float64(2.5),
}  # fmt: skip
OTHERS = {
    "step": 3, "shape": (1, 2), "device": "cpu", "list": [1, (2.5, "é", None, True, b"x")],
}  # fmt: skip


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt", "protocol4.pt"])
def test_files_that_pytorch_wrote(name):
    found = load_pytorch(FIXTURES / name)
    assert list(found) == [*TENSORS, *OTHERS]
    assert {k: found[k] for k in OTHERS} == OTHERS
    for key, expected in TENSORS.items():
        assert isinstance(found[key], rg.Tensor)
        assert found[key].dtype.dtype == expected.dtype
        assert found[key].shape == expected.shape
        assert (found[key].numpy() == expected).all()


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
def test_every_cut_is_noticed(name):
    content = (FIXTURES / name).read_bytes()
    for end in range(0, len(content), 7):
        with pytest.raises(FormatError):
            unpickled(content[:end], "f")


DTYPES = [
    rg.float16, rg.bfloat16, rg.float32, rg.float64, rg.int8, rg.int16, rg.int32, rg.int64,
    rg.uint8, rg.uint16, rg.uint32, rg.uint64, rg.bool, rg.complex64, rg.complex128,
]  # fmt: skip
DATA = {d.name: rg.arange(6).reshape((2, 3)).astype(d) for d in DTYPES}
NESTED = {
    "tensors": DATA,
    "shapes": [rg.tensor(1.5), rg.zeros((0, 2)), rg.ones((1, 1, 3)), np.arange(4)[::2]],
    "plain": (1, -(2**40), 2**100, 0.5, None, True, "é", {0: [], 1: ()}),
}


def same(a, b):
    if isinstance(b, rg.Tensor | np.ndarray):
        b = b.numpy() if isinstance(b, rg.Tensor) else b
        assert a.dtype.dtype == b.dtype
        assert a.shape == b.shape
        assert (a.numpy() == b).all()
    elif isinstance(b, dict):
        assert list(a) == list(b)
        for k in b:
            same(a[k], b[k])
    elif isinstance(b, list | tuple):
        assert type(a) is type(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b
        assert type(a) is type(b)


def test_what_is_saved_is_loaded(tmp_path):
    save_pytorch(tmp_path / "a.pt", NESTED)
    same(load_pytorch(tmp_path / "a.pt"), NESTED)
    content = (tmp_path / "a.pt").read_bytes()
    save_pytorch(tmp_path / "a.pt", NESTED)
    assert (tmp_path / "a.pt").read_bytes() == content


def test_a_tensor_that_occurs_twice_is_stored_once():
    x = rg.ones(1000)
    assert len(pickled({"a": x, "b": x})) < len(pickled({"a": x})) + 200
    same(unpickled(pickled([x, x]), "f"), [x, x])


def test_values_that_cannot_be_saved(tmp_path):
    loop: list[object] = []
    loop.append(loop)
    for value in ({"a": {1, 2}}, {(1,): 2}, object(), loop, {"a": np.array(["x"])}):
        with pytest.raises(DTypeError):
            save_pytorch(tmp_path / "a.pt", value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.torch
def test_pytorch_reads_what_is_written(tmp_path):
    torch = pytest.importorskip("torch")
    save_pytorch(tmp_path / "a.pt", NESTED)
    for mapped in (False, True):
        found = torch.load(tmp_path / "a.pt", weights_only=True, mmap=mapped)
        assert found["plain"] == NESTED["plain"]
        for name, x in found["tensors"].items():
            assert str(x.dtype) == f"torch.{name}"
            expected = DATA[name].numpy().astype(np.complex128)
            assert (x.to(torch.complex128).numpy() == expected).all()
        assert [tuple(x.shape) for x in found["shapes"]] == [(), (0, 2), (1, 1, 3), (2,)]
    module, own = torch.nn.Linear(3, 2), rg.nn.Linear(3, 2)
    save_pytorch(tmp_path / "b.pt", own.state_dict())
    module.load_state_dict(torch.load(tmp_path / "b.pt", weights_only=True))
    torch.save(module.state_dict(), tmp_path / "c.pt")
    other = rg.nn.Linear(3, 2)
    other.load_state_dict(load_pytorch(tmp_path / "c.pt"))
    assert (other.weight.numpy() == own.weight.numpy()).all()


@pytest.mark.torch
def test_what_pytorch_writes_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    content = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    for options in (
        {}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4},
    ):  # fmt: skip
        torch.save(content, tmp_path / "a.pt", **options)
        found = load_pytorch(tmp_path / "a.pt")
        assert found["epoch"] == 3
        assert found["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)
        for key, x in model.state_dict().items():
            assert (found["model"][key].numpy() == x.numpy()).all()
        moments = optimizer.state_dict()["state"][0]["exp_avg"]
        assert (found["optimizer"]["state"][0]["exp_avg"].numpy() == moments.numpy()).all()
    torch.save(model, tmp_path / "b.pt")
    with pytest.raises(FormatError, match=r"it names torch\.nn\.modules\.container\.Sequential"):
        load_pytorch(tmp_path / "b.pt")
    torch.save({"a": torch.ones(2, 2).to_sparse()}, tmp_path / "b.pt")
    with pytest.raises(FormatError, match="_rebuild_sparse_tensor"):
        load_pytorch(tmp_path / "b.pt")


# -- what is made to do damage -------------------------------------------------------------------
def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def number(n):
    return b"\x8a\x10" + n.to_bytes(16, "little", signed=True)


def row(*numbers):
    return b"(" + b"".join(map(number, numbers)) + b"t"


def storage(size, kind="FloatStorage", key="0"):
    return b"(" + text("storage") + b"ctorch\n%s\n" % kind.encode() + text(key) + text("cpu") + (
        number(size) + b"tQ"
    )  # fmt: skip


def tensor(size, offset, shape, strides, **options):
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(size, **options) + number(offset)
        + row(*shape) + row(*strides) + b"\x89ccollections\nOrderedDict\n)RtR"
    )  # fmt: skip


def file(body, data=bytes(16), more=()):
    members = [("x/data.pkl", b"\x80\x02" + body + b"."), ("x/data/0", data)]
    return packed([*members, *more])


def read(body, data=bytes(16), more=()):
    return unpickled(file(body, data, more), "f")


def test_the_files_made_by_hand_are_right():
    data = np.arange(4, dtype=np.float32)
    assert read(tensor(4, 0, (2, 2), (1, 2)), data.tobytes()).tolist() == [[0, 2], [1, 3]]
    big = [("x/byteorder", b"big")]
    found = read(tensor(4, 1, (3,), (1,)), data.astype(">f4").tobytes(), big)
    assert found.tolist() == [1.0, 2.0, 3.0]
    mask = read(tensor(2, 0, (2,), (1,), kind="BoolStorage"), b"\x00\x07")
    assert mask.numpy().view(np.uint8).tolist() == [0, 1]


HUGE = 1 << 100
LAUGHS = b"]q\x00" + b"".join(
    b"](" + b"h%c" % i * 10 + b"eq%c" % (i + 1) for i in range(30)
)  # lists of ten times the list before


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (tensor(4, 0, (5,), (1,)), "beyond the end"),
        (tensor(4, 3, (2,), (1,)), "beyond the end"),
        (tensor(4, 0, (2, 2), (3, 1)), "beyond the end"),
        (tensor(4, HUGE, (1,), (1,)), "beyond the end"),
        (tensor(4, 0, (HUGE,), (1,)), "beyond the end"),
        (tensor(4, 0, (HUGE,), (0,)), "bomb"),
        (tensor(4, 0, (1 << 20, 1 << 20), (0, 0)), "bomb"),
        (b"](" + tensor(4, 0, (1 << 20, 3), (0, 1)) * 6 + b"e", "bomb"),
        (tensor(4, 0, (HUGE, 0), (1, 1)), "cannot be made"),
        (tensor(4, 0, (1, 1), (HUGE, 1)) + b"0N", None),
        (tensor(4, -1, (1,), (1,)), "the shape"),
        (tensor(4, 0, (-1,), (1,)), "the shape"),
        (tensor(4, 0, (2,), (-1,)), "the shape"),
        (tensor(4, 0, (2,), ()), "the shape"),
        (tensor(4, 0, (1,) * 40, (1,) * 40), "40 axes"),
        (tensor(5, 0, (1,), (1,)), "should have 20 bytes, but has 16"),
        (tensor(HUGE, 0, (1,), (1,)), "should have"),
        (tensor(-1, 0, (1,), (1,)), "described by"),
        (tensor(4, 0, (1,), (1,), key="../1"), "missing"),
        (tensor(4, 0, (1,), (1,), kind="QInt8Storage"), "does not compute with"),
        (tensor(16, 0, (1,), (1,), kind="UntypedStorage"), "does not say its type"),
        (b"](" + storage(4) + b"e", "belongs to no tensor"),
        (b"](" + storage(4) + storage(2) + b"e", "two types or sizes"),
        (b"](" + storage(4) + storage(4, "IntStorage") + b"e", "two types or sizes"),
        (text("0") + b"Q", "described by"),
        (LAUGHS, "hold themselves"),
        (b"]q\x00h\x00a", "hold themselves"),
        (b"]" * 5000 + b"a" * 4999, "deep"),
        (b"cos\nsystem\n(" + text("true") + b"tR", "it names os.system"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n(NNNNtR", "the storage of a tensor"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)R", "damaged"),
        (b"ctorch\ndevice\n(]tR", None),
        (b"}ctorch._utils\n_rebuild_tensor_v2\nNs", "is a key"),
    ],
)
def test_files_that_are_made_to_do_damage(body, says):
    if says is None:
        read(body)
        return
    with pytest.raises(FormatError, match=says):
        read(body)


def test_files_of_other_kinds():
    for content, says in [
        (b"", "no PyTorch file"),
        (b"hello", "begins with b'hello'"),
        (b"\x80\x02N.", "a pickle, but no PyTorch file"),
        (bytes(257) + b"ustar", "tar archive"),
        (packed([("a.txt", b"")]), "0 members called data.pkl"),
        (packed([("a/data.pkl", b""), ("b/data.pkl", b"")]), "2 members"),
        (packed([("a/data.pkl", b"N."), ("a/constants.pkl", b"")]), "TorchScript"),
    ]:
        with pytest.raises(FormatError, match=says):
            unpickled(content, "f")


def changed(content, draw):
    """Some bytes exchanged, removed, repeated."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 4])):
        i, j = draw.randrange(len(found) + 1), draw.randrange(len(found) + 1)
        how = draw.randrange(4)
        if how == 0:
            found[i : i + 1] = bytes([draw.randrange(256)])
        elif how == 1:
            found[i : i + draw.choice([1, 2, 8])] = b""
        elif how == 2:
            found[i:i] = found[j : j + draw.choice([1, 4, 16])]
        else:
            found[i : i + 4] = draw.choice([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)])
    return bytes(found)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 20))]
)
@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt", "protocol4.pt"])
def test_changed_files_are_read_or_refused(name, seed):
    draw = random.Random(seed)
    content = (FIXTURES / name).read_bytes()
    refused = 0
    for _ in range(100):
        bad = changed(content, draw)
        if name != "legacy.pt" and draw.random() < 0.7:  # the pickle alone, with a right checksum
            with zipfile.ZipFile(io.BytesIO(content)) as z:
                members = [(n, z.read(n)) for n in z.namelist()]
            bad = packed([(n, changed(c, draw) if n.endswith(".pkl") else c) for n, c in members])
        try:
            unpickled(bad, "f")
        except FormatError:
            refused += 1
    assert refused > 50


def test_save_and_load_as_scripts_call_them(tmp_path):
    model = rg.nn.Linear(2, 1)
    optimizer = rg.optim.Adam(model.parameters(), lr=0.1)
    model(rg.ones(2)).sum().backward()
    optimizer.step()
    state = {"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    rg.save(state, tmp_path / "c.pt")
    file = io.BytesIO()
    rg.save(state, file)
    for f in (tmp_path / "c.pt", str(tmp_path / "c.pt"), io.BytesIO(file.getvalue())):
        found = rg.load(f, map_location=rg.device("cpu"), weights_only=True)
        again = rg.nn.Linear(2, 1)
        again.load_state_dict(found["model"])
        other = rg.optim.Adam(again.parameters(), lr=0.1)
        other.load_state_dict(found["optimizer"])
        for m, o in ((model, optimizer), (again, other)):
            before = {k: v.tolist() for k, v in m.state_dict().items()}
            o.zero_grad()
            m(rg.ones(2)).sum().backward()
            o.step()
            after = {k: v.tolist() for k, v in m.state_dict().items()}
            assert after != before
            m.load_state_dict({k: rg.tensor(v) for k, v in before.items()})
            o.load_state_dict(found["optimizer"])
        assert again.weight.tolist() == model.weight.tolist()
        assert found["epoch"] == 3
    with pytest.raises(rg.DTypeError, match=r"x.state_dict\(\).*x = Linear"):
        rg.save(model, tmp_path / "m.pt")
