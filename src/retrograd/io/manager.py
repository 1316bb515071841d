"""The checkpoints of one run in one directory: rotation, latest, best."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from retrograd.errors import FormatError, OptionError
from retrograd.files import StrPath, check_writable, locked, make_directory, writes
from retrograd.io.checkpoint import load_checkpoint, read_checkpoint_header, save_checkpoint
from retrograd.xla.agreement import agree, is_main

_NAME = re.compile(r"step-(\d+)\.safetensors")
_PARTIAL = re.compile(r"\.step-\d+\.safetensors\.\d+\.part")


class CheckpointManager:
    """Saves checkpoints as `step-00000100.safetensors`, keeps the last few and the best.

    `keep` is how many of the latest are kept; the one with the lowest metric stays as well. With
    `fresh`, checkpoints that an earlier run left in the directory are put aside, into its
    subdirectory `previous`, when the first one is saved.

    >>> import tempfile
    >>> from retrograd.io import CheckpointManager
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manager = CheckpointManager(folder, keep=1)
    ...     for step, loss in (1, 0.5), (2, 0.9), (3, 0.7):
    ...         path = manager.save(step, metric=loss)
    ...     [p.name for p in manager.paths()], manager.best.name
    (['step-00000001.safetensors', 'step-00000003.safetensors'], 'step-00000001.safetensors')
    """

    def __init__(self, directory: StrPath, keep: int = 3, fresh: bool = False) -> None:
        if keep < 1:
            raise OptionError(f"a checkpoint manager keeps at least 1 checkpoint, not {keep}")
        self.directory = Path(directory)
        self.keep = keep
        self._put_aside = fresh

    def paths(self) -> list[Path]:
        """The checkpoints of the directory, in the order of their steps."""
        if not self.directory.is_dir():
            return []
        return sorted(
            (p for p in self.directory.iterdir() if _NAME.fullmatch(p.name) and p.is_file()),
            key=step_of,
        )

    @property
    def latest(self) -> Path | None:
        """The checkpoint of the highest step; None where there is none."""
        return max(self.paths(), key=step_of, default=None)

    @property
    def best(self) -> Path | None:
        """The checkpoint with the lowest metric, the earlier of equal ones; None without metric."""
        metrics = {p: _metric(p) for p in self.paths()}
        known = {p: m for p, m in metrics.items() if m is not None and m == m}
        return min(known, key=lambda p: known[p], default=None)

    def lock(self) -> AbstractContextManager[None]:
        """A block in which no other process holds this lock: two runs that save here would remove
        one another's checkpoints. `BlockingIOError`, at once, that names the process which does."""
        return locked(make_directory(self.directory, "directory for checkpoints"))

    def prepare(self) -> None:
        """Create the directory, so that a place where nothing can be written is found before the
        work whose result it is for."""
        check_writable(make_directory(self.directory, "directory for checkpoints"))

    def save(self, step: int, *, metric: float | None = None, **parts: Any) -> Path:
        """Write the checkpoint of a step, then remove those that need not be kept."""
        make_directory(self.directory, "directory for checkpoints")
        self.put_aside()
        path = self.directory / f"step-{step:08d}.safetensors"
        save_checkpoint(path, step=step, metric=metric, **parts)
        self._rotate()
        return path

    def load(self, path: StrPath | None = None, **objects: Any) -> dict[str, Any]:
        """The parts of a checkpoint, by default the latest; see `load_checkpoint`."""
        chosen = Path(path) if path is not None else self.latest
        if chosen is None:
            raise FileNotFoundError(
                2, "there is no checkpoint in this directory", str(self.directory)
            )
        agree(f"loads {chosen.name}", chosen.name)
        try:
            return load_checkpoint(chosen, **objects)
        except FormatError as error:
            earlier = [p for p in self.paths() if step_of(p) < step_of(chosen)]
            if earlier:
                error.add_note(f"the checkpoint before it is {earlier[-1]}")
            raise

    def put_aside(self, *others: str) -> None:
        """With `fresh`, put the checkpoints that an earlier run left into `previous`, and files of
        these names that it left beside them. `save` does it at the latest, for checkpoints."""
        if not self._put_aside or not (writes() and is_main()):
            return
        old = [*self.paths(), *[p for n in others if (p := self.directory / n).is_file()]]
        if old:
            previous = make_directory(self.directory / "previous")
            for p in CheckpointManager(previous).paths() if self.paths() else ():
                p.unlink()
            for p in old:
                p.replace(previous / p.name)
        self._put_aside = False

    def _rotate(self) -> None:
        if not (writes() and is_main()):
            return
        kept = {*self.paths()[-self.keep :], self.best}
        for p in self.directory.iterdir():
            stale = _PARTIAL.fullmatch(p.name)  # left by a process that was killed
            if stale or (_NAME.fullmatch(p.name) and p not in kept):
                p.unlink(missing_ok=True)


def step_of(path: StrPath) -> int:
    """The step in the name of a checkpoint; -1 where there is none."""
    found = _NAME.fullmatch(os.path.basename(path))
    return int(found[1]) if found else -1


def _metric(path: Path) -> float | None:
    try:
        metric = read_checkpoint_header(path).get("metric")
    except FormatError:
        return None  # a damaged file is nobody's best
    return metric if isinstance(metric, int | float) else None
