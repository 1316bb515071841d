"""Programs on several devices and in several processes, which tests start."""

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parents[2]
LIMIT = 240  # seconds


def environment(devices: int = 1) -> dict[str, str]:
    """With so many virtual devices, and none of what launchers of this process have set."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "PMI"))}
    return kept | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(HERE / "src"), str(HERE)]),
    }


def on_devices(devices: int, code: str, *arguments: str) -> str:
    """What a program writes that has so many devices; it has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=environment(devices), capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-1000:]
    return done.stdout


def in_processes(
    count: int,
    code: str,
    *arguments: str,
    devices: int = 1,
    only: Sequence[int] | None = None,
    patience: float = LIMIT,
) -> list[tuple[int, str, str]]:
    """Of each of so many processes, that are given their number, how many there are, and an
    address, before the arguments: how it ended, and what it wrote to both channels. Only some may
    be started. What runs on after the first one for longer than `patience` is ended."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(i), str(count), address, *arguments],
            env=environment(devices),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in (range(count) if only is None else only)
    ]
    found = []
    try:
        for process in started:
            try:
                out, err = process.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
            found.append((process.returncode, out, err))
            patience = min(patience, 20)
    finally:
        for process in started:
            process.kill()
            process.wait()
    return found
