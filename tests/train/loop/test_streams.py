"""Runs on loaders that end before they are done: those that learn from a stream of text, whose
samples have no numbers, killed in the middle of an epoch, with and without workers; and those of
which a worker process dies. They go on to the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import data, nn, optim
from retrograd.nn import functional as F
from retrograd.train import TrainingRun, fit
from tests.train.loop.test_snapshot import bits


def encode(line: str) -> list[int]:
    return [ord(c) % 17 for c in line]


def corpus(folder: Path) -> list[Path]:
    """Files of lines of different lengths."""
    rng = np.random.default_rng(0)
    files = []
    for i in range(4):
        lines = ["".join(map(chr, rng.integers(97, 123, n))) for n in rng.integers(0, 40, 20)]
        files.append(folder / f"{i}.txt")
        files[-1].write_text("\n".join(lines) + "\n")
    return files


class Language(nn.Module):
    def __init__(self) -> None:
        generator = rg.random.Generator(5)
        self.embedding = nn.Embedding(17, 6, generator=generator)
        self.dropout = nn.Dropout(0.2, generator=generator.split())
        self.head = nn.Linear(6, 17, generator=generator)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.dropout(self.embedding(tokens)))


def loss(model: Any, batch: Any) -> Any:
    return F.cross_entropy(model(batch[0]).reshape((-1, 17)), batch[1].reshape((-1,)))


class KillAt:
    """Ends the process at once behind a step, as a power cut does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, run: TrainingRun) -> None:
        if run.step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def run_of(files: list[Path], folder: Path | None, workers: int, kill: int | None = None) -> Any:
    stream = data.ShuffleBuffer(
        data.PackedWindows(data.TextLines(files), length=8, encode=encode), buffer_size=13
    )
    loader = data.DataLoader(stream, batch_size=4, num_workers=workers, seed=3, drop_last=True)
    with rg.backend("reference"):
        return fit(
            Language(), loss, loader, optimizer=optim.Adam(lr=0.01), epochs=3, folder=folder,
            checkpoint_every=5, resume=folder is not None, progress=False,
            callbacks=() if kill is None else KillAt(kill),
        )  # fmt: skip


def content(run: TrainingRun) -> Any:
    return bits(run.model), bits(run.state), run.history["loss"], run.step, run.epoch


SCRIPT = """
    import sys
    from pathlib import Path
    from tests.train.loop import test_streams as t
    files = [Path(f) for f in sys.argv[4:]]
    t.run_of(files, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_killed_in_the_middle_of_an_epoch(tmp_path: Path, workers: int) -> None:
    files = corpus(tmp_path)
    whole = run_of(files, None, workers)
    each = whole.step // 3
    assert each > 7
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([f"{root}/src", root])}
    for kill in (3, 7, each + 4, 2 * each + 6):  # before a checkpoint, and within each epoch
        words = [sys.executable, "-c", textwrap.dedent(SCRIPT), tmp_path / "run", workers, kill]
        done = subprocess.run(
            [*map(str, words), *map(str, files)], env=environment, capture_output=True, timeout=120
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    # The process ends before what is due at a step is saved.
    saved = sorted((tmp_path / "run").glob("step-*.safetensors"))
    assert saved[-1].name == f"step-{(2 * each + 5) // 5 * 5:08d}.safetensors"
    assert content(run_of(files, tmp_path / "run", workers)) == content(whole)


class Rows:
    """Samples, of which one ends the process that makes it while a file is there."""

    def __init__(self, flag: Path, how: str) -> None:
        self.flag, self.how = flag, how

    def __len__(self) -> int:
        return 60

    def __getitem__(self, i: int) -> Any:
        if i == 33 and self.flag.exists():
            if self.how == "dies":
                os._exit(9)
            raise ValueError("a row that cannot be read")
        return np.full(3, i / 60, np.float32), np.float32(i % 2)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["dies", "fails"])
@pytest.mark.parametrize("together", [1, 4])
def test_what_was_learned_before_a_worker_failed_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, together: int
) -> None:
    flag = tmp_path / "flag"
    monkeypatch.setattr("retrograd.train.loop.loop.TrainingLoop.room", lambda self: together)

    def go(folder: Path | None) -> Any:
        loader = data.DataLoader(Rows(flag, how), batch_size=4, num_workers=2, seed=1, shuffle=True)
        with rg.backend("reference"):
            return fit(
                nn.Linear(3, 1, generator=rg.random.Generator(0)),
                lambda m, b: ((m(b[0])[:, 0] - b[1]) ** 2).mean(), loader,
                optimizer=optim.Adam(lr=0.01), epochs=2, folder=folder,
                resume=folder is not None, progress=False,
            )  # fmt: skip

    whole = go(None)
    flag.touch()
    with pytest.raises((rg.WorkerError, ValueError)) as caught:
        go(tmp_path / "run")
    (checkpoint,) = (tmp_path / "run").glob("step-*.safetensors")
    assert any(str(checkpoint) in note for note in caught.value.__notes__)
    order = data.DataLoader(range(60), 4, seed=1, shuffle=True)
    bad = next(k for k, batch in enumerate(order) if 33 in batch.tolist())
    assert checkpoint.name == f"step-{bad:08d}.safetensors"  # all batches before that one
    flag.unlink()
    assert content(go(tmp_path / "run")) == content(whole)
