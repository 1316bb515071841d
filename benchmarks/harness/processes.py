"""The parent's side of a worker: start it, ask it, give up on it."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]


class WorkerFailed(Exception):
    """A worker that did not answer, with the reason."""


class Worker:
    """One process for one workload and peer, stopped between requests: threads of OpenBLAS, for
    one, wait for work without sleeping, long after the last of it, on a core that another peer is
    being measured on.

    `cache` is a directory for what libraries keep on disk; without it the worker has an empty one
    of its own, so that a first step is cold however often the benchmarks were run.
    """

    def __init__(self, workload: str, peer: str, threads: int, cache: Path | None = None) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="retrograd_benchmarks_")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._pending = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.harness.worker", workload, peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(threads, cache or Path(self._own.name), keep=cache is not None),
        )

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """The answer to a request, within so many seconds."""
        self._signal("SIGCONT")
        try:
            self._pipe("stdin").write(json.dumps(request).encode() + b"\n")
            self._pipe("stdin").flush()
        except OSError:
            raise WorkerFailed(self._reason()) from None
        reply = json.loads(self._line(limit))
        self._signal("SIGSTOP")
        if "error" in reply:
            raise WorkerFailed(reply["error"])
        return reply

    def _signal(self, name: str) -> None:
        """Send a signal, where there is such a thing and the process still runs."""
        if hasattr(signal, name) and self.process.poll() is None:
            self.process.send_signal(getattr(signal, name))

    def _pipe(self, name: str) -> IO[bytes]:
        pipe = getattr(self.process, name)
        assert pipe is not None
        return pipe

    def _line(self, limit: float) -> bytes:
        deadline = time.monotonic() + limit
        pipe = self._pipe("stdout")
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.close()
                    raise WorkerFailed(f"no answer within {limit:.0f} s")
                more = os.read(pipe.fileno(), 65536)
                if not more:
                    raise WorkerFailed(self._reason())
                self._pending += more
        line, self._pending = self._pending.split(b"\n", 1)
        return line

    def _reason(self) -> str:
        """Why the process ended without an answer."""
        code = self.process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        ended = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{ended}: {lines[-1]}" if lines else ended

    def close(self) -> None:
        """End the process, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._pipe("stdin").close()
        self._pipe("stdout").close()
        self._errors.close()
        self._own.cleanup()


def environment(threads: int, cache: Path, *, keep: bool) -> dict[str, str]:
    """The environment of a worker: the number of threads for libraries that read it there, and
    where to cache. JAX keeps nothing on disk unless it is told to, which `keep` does."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    flags = os.environ.get("XLA_FLAGS", "")
    one = " --xla_cpu_multi_thread_eigen=false" if threads == 1 else ""
    caches = {
        "XDG_CACHE_HOME": str(cache),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "RETROGRAD_CACHE_DIR": str(cache / "retrograd"),
    }
    if keep:
        caches["JAX_COMPILATION_CACHE_DIR"] = str(cache / "jax")
        caches["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return {
        **os.environ,
        **dict.fromkeys(names, str(threads)),
        **caches,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": (flags + one).strip(),
        "PYTHONPATH": os.pathsep.join(
            p for p in (str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if p
        ),
    }
