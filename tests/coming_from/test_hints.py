"""Hints: what an error says of a name that another library has."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import pytest

import retrograd as rg
import retrograd.inspect  # an attribute once somebody has imported it
from retrograd.coming_from import hints
from retrograd.coming_from.hints import LIBRARIES, hint, table

# Where names of other libraries would be here.
HERE: dict[str, Any] = {
    "torch.Tensor": rg.Tensor, "jax.Array": rg.Tensor, "numpy.ndarray": rg.Tensor, "torch": rg,
    "numpy": rg, "jax.numpy": rg, "jax": rg, "jax.lax": rg, "jax.nn": rg.nn.functional,
    "numpy.linalg": rg.linalg, "numpy.fft": rg.fft, "torch.nn": rg.nn,
    "torch.nn.functional": rg.nn.functional, "torch.nn.utils": rg.nn.utils,
    "torch.linalg": rg.linalg, "torch.optim": rg.optim, "torch.utils.data": rg.data,
    "torch.fft": rg.fft, "torch.special": rg.special, "torch.random": rg.random,
    "jax.random": rg.random, "numpy.random": rg.random, "torch.autograd": rg.autograd,
    "torch.func": rg.func, "torch.cuda": rg.cuda, "torch.utils": rg.utils, "jax modules": rg,
}  # fmt: skip
ROOMS = [(library, room) for library in LIBRARIES for room in table(library)]


@pytest.mark.parametrize(("library", "room"), ROOMS)
def test_a_name_is_where_its_table_says(library: str, room: str) -> None:
    entries = table(library)[room]
    if room not in HERE:
        return
    here = [name for name in entries if hasattr(HERE[room], name)]
    assert here == [name for name, e in entries.items() if e.kind in ("same", "differs")]


@pytest.mark.parametrize(("library", "room"), ROOMS)
def test_what_is_said_can_be_written(library: str, room: str) -> None:
    for name, entry in table(library)[room].items():
        assert (entry.kind == "same") == (not entry.text), name
        for path in re.findall(r"\brg((?:\.[A-Za-z_]\w*)+)", entry.text):
            found: Any = rg
            for part in path.strip(".").split("."):
                assert hasattr(found, part), f"{room}.{name}: rg{path}"
                found = getattr(found, part)
        for method in re.findall(r"(?<![\w.])x\.([a-z_]\w*)", entry.text):
            assert hasattr(rg.Tensor, method), f"{room}.{name}: x.{method}"


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (rg.ones(2), "cuda", "rg.backend"),
        (rg.ones(2), "addressable_shards", "rg.distributed.spec_of"),
        (rg, "Generator", "rg.random.Generator"),
        (rg, "mps", "rg.backend"),
        (rg, "lax", "rg.scan"),
        (rg, "tree_util", "jax.tree_util: rg.tree.map"),
        (rg, "derivative", "rg.grad(f)(x)"),
        (rg.autograd, "Variable", "requires_grad=True"),
        (rg.autograd, "set_detect_anomaly", "rg.debug()"),
        (rg.func, "functionalize", "machinery"),
        (rg.cuda, "amp", "rg.amp.GradScaler"),
        (rg.utils, "tensorboard", "rg.train"),
        (rg, "conv2d", "rg.nn.functional.conv2d"),
        (rg, "ShapeDtypeStruct", "rg.spec"),
        (rg, "issubdtype", "rg.isdtype"),
        (rg.ones(2), "reshap", "did you mean 'reshape'?"),
        (rg, "sofmax", "did you mean 'softmax'?"),
        (rg, "Linear", "it is rg.nn.Linear"),
        (rg, "AdamW", "it is rg.optim.AdamW"),
        (rg.nn, "SyncBatchNorm", "rg.distributed has meshes"),
        (rg.nn, "Conv2D", "did you mean 'Conv2d'?"),
        (rg.nn, "conv2d", "it is rg.nn.functional.conv2d"),
        (rg.nn.functional, "relu_", "rg.nn.functional.relu"),
        (rg.nn.utils, "clip_grad_norm", "clip_grad_norm_"),
        (rg.optim, "StepLR", "it is rg.optim.lr_scheduler.StepLR"),
        (rg.optim, "Addam", "did you mean 'Adam'?"),
        (rg.linalg, "inv_ex", "rg.linalg.inv"),
        (rg.fft, "ffft", "did you mean 'fft'?"),
        (rg.random, "PRNGKey", "rg.random.Generator"),
        (rg.random, "default_rng", "rg.random.Generator"),
        (rg.random, "manual_seed", "rg.manual_seed"),
        (rg.data, "DataLoadr", "did you mean 'DataLoader'?"),
        (rg.data, "IterDataPipe", "rg.data.IterableDataset"),
        (rg.special, "round", "rg.round"),
    ],
)
def test_an_absent_name_says_what_to_write(owner: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)) as error:
        getattr(owner, name)
    assert isinstance(error.value, rg.RetrogradError)
    assert error.value.name == name
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_no_table_is_read_before_a_message_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(library: str) -> Any:
        raise AssertionError(library)

    monkeypatch.setattr(hints, "table", read)
    assert not hasattr(rg.ones(2), "cuda")
    assert not hasattr(rg, "mps")
    assert getattr(rg.ones(2), "cuda", None) is None


def test_a_room_that_no_library_has_is_silent() -> None:
    assert hint("retrograd.gnn", "cuda") == ""
    assert hint("Tensor", "no such name") == ""


def test_tensors_copy_and_pickle_as_before() -> None:
    x = rg.ones(2)
    assert copy.deepcopy(x).tolist() == pickle.loads(pickle.dumps(x)).tolist() == [1.0, 1.0]
