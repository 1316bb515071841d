"""Files with valid checksums and the wrong structure, and what may hang or grow without bounds."""

import copy
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.io import CheckpointManager, load_checkpoint, read_checkpoint_header, save_checkpoint
from retrograd.io.checkpoint import _checksum
from retrograd.io.safetensors import load_safetensors, metadata_of, pack, unpack

VALUES: list[Any] = [
    None, True, -1, 0, 10**30, 1e400, "", "x", [], {}, [[]], {"$tensor": "nope"}, {"$tensor": 3},
    {"$tuple": 3}, {"$numbered": {"x": 1}}, {"$array": []}, {"$other": 1}, float("nan"),
]  # fmt: skip


def places(value, found):
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for k in keys:
        found.append((value, k))
        places(value[k], found)
    return found


def mutated(header, draw):
    """A header with some of it dropped, replaced, exchanged or renamed."""
    new = copy.deepcopy(header)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        box, key = draw.choice(places(new, []))
        how = draw.random()
        if how < 0.3:
            del box[key]
        elif how < 0.8:
            box[key] = copy.deepcopy(draw.choice(VALUES))
        elif how < 0.9:
            other, k = draw.choice(places(header, []))
            box[key] = copy.deepcopy(other[k])
        elif isinstance(box, dict):
            box[draw.choice(["$x", "y", "1"])] = box.pop(key)
    return new


def optimizer():
    return optim.AdamW(nn.Linear(3, 2), lr=0.1)


@pytest.fixture
def saved(tmp_path):
    path, model = tmp_path / "a.safetensors", nn.Linear(3, 2)
    own = optim.AdamW(model, lr=0.1)
    (model(rg.ones((1, 3))) ** 2).sum().backward()
    own.step()
    parts = {"model": model, "optimizer": own, "generator": rg.random.Generator(0)}
    save_checkpoint(path, **parts, step=3, more={"a": [1, (2, 3)], "b": {1: np.ones(2)}})
    return path


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_checkpoint_of_another_structure_is_an_error_of_ours(saved, seed):
    draw = random.Random(seed)
    content = saved.read_bytes()
    arrays, header = unpack(content, saved), json.loads(metadata_of(content, saved)["retrograd"])
    refused = 0
    for _ in range(500 if seed else 60):
        new = mutated(header, draw)
        if "content" in new and "checksum" in new:
            new["checksum"] = _checksum(new["content"])
        saved.write_bytes(pack(arrays, {"retrograd": json.dumps(new)}))
        for load in (
            lambda: load_checkpoint(saved),
            lambda: read_checkpoint_header(saved),
            lambda: load_checkpoint(saved, model=nn.Linear(3, 2)),
            lambda: load_checkpoint(saved, generator=rg.random.Generator(1)),
            lambda: load_checkpoint(saved, optimizer=optimizer()),
        ):
            try:
                load()
            except rg.RetrogradError:
                refused += 1
    assert refused > 60


def test_what_lies_too_deep_is_an_error(saved):
    deep = '{"kind": "checkpoint", "version": 1, "content": ' + "[" * 10**5 + "]" * 10**5 + "}"
    saved.write_bytes(pack({}, {"retrograd": deep}))
    with pytest.raises(rg.FormatError):
        load_checkpoint(saved)
    inner: list = []
    for _ in range(150):
        inner = [inner]
    header = {"kind": "checkpoint", "version": 1, "content": {"x": inner}, "checksums": {}}
    header["checksum"] = _checksum(header["content"])
    saved.write_bytes(pack({}, {"retrograd": json.dumps(header)}))
    with pytest.raises(rg.FormatError, match="deeper than 100"):
        load_checkpoint(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        for read in (load_safetensors, load_checkpoint, rg.load_graph):
            with pytest.raises(OSError, match=r"a pipe|a device") as failure:
                read(path)
            assert str(path) in str(failure.value)


@pytest.mark.slow
def test_a_directory_has_one_run_at_a_time(tmp_path):
    manager = CheckpointManager(tmp_path)
    code = (
        "import sys, retrograd as rg\n"
        "from retrograd.io import CheckpointManager\n"
        "try:\n    with CheckpointManager(sys.argv[1]).lock(): print('mine')\n"
        "except OSError as error: print(error)\n"
    )

    def other():
        run = [sys.executable, "-c", code, str(tmp_path)]
        path = {**os.environ, "PYTHONPATH": str(Path(rg.__file__).parents[1])}
        return subprocess.check_output(run, text=True, timeout=120, env=path)

    with manager.lock():
        said = other()
        assert f"process {os.getpid()} is writing its run there" in said
        with pytest.raises(BlockingIOError, match="choose another directory"), manager.lock():
            pass
    assert other() == "mine\n"
    with manager.lock():
        pass
    assert list(tmp_path.iterdir()) == []
