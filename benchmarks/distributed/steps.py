"""Steps of training on 1, 2, 4 and 8 virtual devices, beside the model of `rg.distributed.cost`.

    python -m benchmarks.distributed.steps

Virtual devices share the cores of the processor, so computation becomes no shorter once there is a
device for each; what grows is communication, here copies in memory and waiting for one another. The
link is fitted on 2 and 4 devices, by least squares, and what it says of 8 compared with what is
measured. What it says of more is computed, not measured. Processes take turns, and minima count.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

DEVICES = (1, 2, 4, 8)
STEPS, TURNS = 20, 3
PLANS = ("data parallel", "fully sharded", "tensor parallel")
SIZE: dict[str, Any] = {
    "depth": 2,
    "width": 128,
    "heads": 8,
    "context": 64,
    "vocab_size": 64,
    "documents": False,
}
BATCH = 16


def measure(devices: int) -> dict[str, Any]:
    """Seconds of the quickest step and the collectives of one, by plan; in a process of its own."""
    import time
    from dataclasses import asdict, replace

    import retrograd as rg
    from retrograd import distributed as D
    from retrograd.train.gpt.model import GPT, GPTConfig, token_loss
    from retrograd.train.gpt.trainer import TENSOR_PARALLEL

    model, opt = GPT(GPTConfig(**SIZE), rg.random.Generator(0)), rg.optim.Adam(lr=1e-3)
    shape = (BATCH, SIZE["context"])
    tokens = np.random.default_rng(0).integers(0, SIZE["vocab_size"], shape)

    @rg.jit
    def step(model: Any, state: Any, tokens: Any, targets: Any) -> Any:
        loss, grads = rg.value_and_grad(token_loss)(model, tokens, targets)
        model, state = opt.update(model, grads, state)
        return model, state, loss

    tensor = replace(TENSOR_PARALLEL, inputs=("data",))
    plans = {
        "data parallel": (D.data_parallel(), {"data": devices}),
        "fully sharded": (D.fully_sharded(), {"data": devices}),
        "tensor parallel": (tensor, {"data": 1, "model": devices}),
    }
    found: dict[str, Any] = {}
    for name, (plan, axes) in plans.items():
        with rg.backend("xla"), rg.Mesh(axes), rg.no_grad():
            m = D.shard(model, plan)
            s = D.shard_like(opt.init(model), m)
            batch = D.shard((tokens, np.roll(tokens, -1, 1)), plan.inputs)
            counted = D.cost(step, m, s, *batch)
            times = []
            for _ in range(STEPS):
                began = time.perf_counter()
                m, s, loss = step(m, s, *batch)
                float(loss)
                times.append(time.perf_counter() - began)
        expected = D.predicted(model, plan, axes, rows=tokens.size)
        found[name] = {
            "seconds": min(times),
            "loss": float(loss),
            "compiled": [asdict(c) for c in counted],
            "compiled_bytes": D.by_kind(counted),
            "predicted_bytes": D.by_kind(expected),
        }
    return found


def in_process(devices: int) -> dict[str, Any]:
    """The same with so many virtual devices."""
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.distributed.steps", str(devices)],
        env=environment, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def report(found: dict[int, dict[str, Any]]) -> None:
    """Measured and modelled times, and those of more devices on a link of a data centre."""
    from scipy.optimize import nnls

    from retrograd import distributed as D

    cores = len(os.sched_getaffinity(0))
    fast = D.Link(50e9, 5e-6)  # 400 Gbit/s, and 5 microseconds: stated, not measured
    for plan in PLANS:
        rows = {n: found[n][plan] for n in DEVICES}
        listed = {n: [D.Collective(**c) for c in rows[n]["compiled"]] for n in DEVICES}
        compute = rows[1]["seconds"]
        a = [
            [
                sum(D.collective_time(c, D.Link(1.0, 0.0)) for c in listed[n]),
                sum(D.collective_time(c, D.Link(1e30, 1.0)) for c in listed[n]),
            ]
            for n in (2, 4)
        ]
        extra = [rows[n]["seconds"] - compute / min(n, cores) for n in (2, 4)]
        per_byte, latency = nnls(np.array(a), np.array(extra))[0]
        link = D.Link(1 / max(per_byte, 1e-12), float(latency))
        print(f"{plan}: link of {link.bytes_per_s / 1e9:.2f} GB/s, {1e6 * link.latency_s:.0f} us")
        for n in DEVICES:
            model = D.step_time(compute, n, listed[n], link, workers=cores)
            row = rows[n]
            print(
                f"  {n} devices: {1e3 * row['seconds']:.1f} ms, model {1e3 * model:.1f} ms; "
                f"bytes compiled {row['compiled_bytes']}, predicted {row['predicted_bytes']}"
            )
    grads = found[8]["data parallel"]["predicted_bytes"]["all-reduce"]
    for n in (8, 64, 512, 4096):
        each = D.step_time(0.1 * n, n, [D.Collective("all-reduce", grads, n)], fast)
        print(f"data parallel, 0.1 s a device, {n} devices: {1e3 * each:.2f} ms (computed)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
    else:
        turns = [{n: in_process(n) for n in DEVICES} for _ in range(TURNS)]
        for turn in turns:
            for n, plan in itertools.product(DEVICES, PLANS):
                best = turns[0][n][plan]
                best["seconds"] = min(best["seconds"], turn[n][plan]["seconds"])
        report(turns[0])
