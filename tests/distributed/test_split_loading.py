"""Recipes in several processes: each loads its own samples, and all train as one process does."""

import json

import numpy as np
import pytest

from tests.distributed.machines import in_processes

pytest.importorskip("jax")
pytest.importorskip("PIL")
pytestmark = pytest.mark.slow

# What each process tells: losses, and which samples it has loaded.
RECIPES = """
import json, sys
from pathlib import Path
import jax, numpy as np, retrograd as rg
from retrograd import distributed as D
from retrograd.data import DataLoader, DistributedSampler, TensorDataset
from retrograd.train import images
from retrograd.train.gpt.trainer import GPTTrainer
from retrograd.train.gpt.windows import TextFile
from retrograd.train.images.sources import FolderImages
from retrograd.train.loop.fit import fit
from retrograd.tuning import TUNING

number, count, address, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
if count > 1:
    D.initialize(address, count, number, timeout_s=120)
what = sys.argv[5]
mesh = rg.Mesh({"data": 2, "model": 2} if what == "model" else {"data": 4})
told = {}
TUNING.fit_checked_bytes = 4096  # of these small data
small = dict(width=8, heads=2, depth=1, context=8, batch=8, steps=6)

def trained(source, **more):
    trainer = GPTTrainer.fresh(source, {**small, **more})
    rows = trainer._rows
    found, tokens = [], 0
    while trainer.step < 6:
        losses, n = trainer.steps_at_once(4)
        found, tokens = found + losses.tolist(), tokens + n
    return found, tokens, None if rows is None else rows.tolist(), trainer.validation_loss()

with rg.backend("xla"), mesh:
    if what != "fit":
        told["text"] = trained(TextFile.read(folder / "text.txt"), documents=False)
    if what == "gpt":
        told["documents"] = trained((folder / "names.txt").read_text().split())
    if what == "fit":
        task = images.read_folder(folder / "pictures", 8)
        config = images.ImageConfig(epochs=1, batch=16, width=4, dropout=0.0)
        outcome = images.train(task, config, folder / f"run{count}")
        told["images"] = outcome.run.history["loss"], outcome.predicted.tolist(), outcome.accuracy
        several = isinstance(task.images, FolderImages)
        told["read"] = task.images.is_read.tolist() if several else None
        rng = np.random.default_rng(0)
        x, y = (rng.standard_normal((32, n)).astype("float32") for n in (3, 1))
        model = rg.nn.Linear(3, 1, generator=rg.random.Generator(0))
        each = DistributedSampler(range(32), seed=1) if count > 1 else (
            DistributedSampler(range(32), 1, 0, seed=1))
        loader = DataLoader(TensorDataset(x, y), batch_size=8 // count, sampler=each)
        run = fit(model, rg.nn.MSELoss(), loader, optimizer=rg.optim.SGD(lr=0.1), epochs=3,
                  progress=False)
        told["loader"] = run.history["loss"]
        try:
            fit(model, rg.nn.MSELoss(), (x + number, y), optimizer=rg.optim.SGD(lr=0.1), steps=1,
                batch_size=8, progress=False)
        except rg.DistributedError as error:
            told["error"] = str(error)
print("told", json.dumps(told), flush=True)
"""


def told_by(count, folder, *more):
    found = in_processes(count, RECIPES, str(folder), *more, devices=4 // count)
    for code, _, err in found:
        assert code == 0, err[-3000:]
    lines = [line for _, out, _ in found for line in out.splitlines() if line.startswith("told")]
    return [json.loads(line[5:]) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text, documents and pictures of two classes."""
    from PIL import Image

    where = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (where / "text.txt").write_text("".join(rng.choice(list("abcd \n"), 3000)))
    names = ["".join(rng.choice(list("abcdef"), rng.integers(2, 12))) for _ in range(100)]
    (where / "names.txt").write_text("\n".join(names))
    for name, bright in (("dark", 40), ("light", 200)):
        (where / "pictures" / name).mkdir(parents=True)
        for i in range(60):
            pixels = rng.integers(bright - 40, bright + 40, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(where / "pictures" / name / f"{i}.png")
    return where


@pytest.fixture(scope="module")
def alone(folder):
    """What one process with four devices tells."""
    return {what: told_by(1, folder, what)[0] for what in ("gpt", "fit")}


@pytest.mark.parametrize("count", [2, 4])
def test_each_process_loads_its_own_samples_of_a_text(folder, alone, count):
    """The rows of a batch are divided; losses are those of one process."""
    every, alone = told_by(count, folder, "gpt"), alone["gpt"]
    for kind in ("text", "documents"):
        rows = [row for told in every for row in told[kind][2]]
        assert sorted(rows) == list(range(8)), kind
        for told in every:
            assert len(told[kind][2]) == 8 // count
            assert told[kind][0] == pytest.approx(alone[kind][0], rel=1e-6)
            assert told[kind][1] == alone[kind][1]  # tokens of all
            assert told[kind][3] == pytest.approx(alone[kind][3], rel=1e-6)


@pytest.mark.parametrize("count", [2, 4])
def test_each_process_reads_its_own_pictures(folder, alone, count):
    """And a loader whose sampler is of one process gives its part. Data that differ are an error in
    all."""
    every, alone = told_by(count, folder, "fit"), alone["fit"]
    for told in every:
        losses, predicted, accuracy = told["images"]
        assert losses == pytest.approx(alone["images"][0], rel=1e-5)
        assert (predicted, accuracy) == (alone["images"][1], alone["images"][2])
        assert told["loader"] == pytest.approx(alone["loader"], rel=1e-6)
        # A few are looked at by all, to tell the data from other data.
        assert sum(told["read"]) < 120 / count + 32
        assert "process 1 has data with the checksum" in told["error"]
        assert "give all the same data" in told["error"]
    assert np.any([told["read"] for told in every], axis=0).sum() > 100


def test_processes_with_the_same_rows(folder):
    """Of a model that is divided over processes these load the same samples."""
    alone, every = told_by(1, folder, "model")[0], told_by(4, folder, "model")
    assert [told["text"][2] for told in every] == [[0, 1, 2, 3]] * 2 + [[4, 5, 6, 7]] * 2
    for told in every:
        assert told["text"][0] == pytest.approx(alone["text"][0], rel=1e-5)
