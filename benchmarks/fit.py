"""What `rg.train.fit` costs beside loops that are written by hand, for three sizes of models.

For each: processor time of a step, the least of some turns in which all ways come one after
another, without what a run costs once (a long run less a short one); and whether losses and
parameters have the same bits. By hand is a loop over `jit` of a step, with the module as it is and
with its leaves in flat tuples, which is as fast as a loop of single steps gets, and this with rows
gathered for each batch in the order that `fit` gives them.

    python benchmarks/fit.py [--turns 5] [--threads 1]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import retrograd as rg
from retrograd import nn, optim

# Sizes of layers, of a batch, batches of an epoch, epochs of a short run and of a long one.
MODELS = {
    "tiny": ((2, 16, 16, 1), 32, 100, 30, 230),
    "small": ((64, 128, 128, 10), 64, 100, 5, 35),
    "large": ((784, 512, 512, 10), 128, 20, 2, 12),
}
Way = Callable[[int], tuple[Any, list[float]]]


def network(sizes: tuple[int, ...]) -> nn.Module:
    generator = rg.random.Generator(0)
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b, generator=generator), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def squares(model: Any, batch: Any) -> Any:
    return ((model(batch[0]) - batch[1]) ** 2).mean()


def ways(sizes: tuple[int, ...], size: int, count: int) -> dict[str, Way]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count * size, sizes[0])).astype(np.float32)
    y = rng.normal(size=(count * size, sizes[-1])).astype(np.float32)
    cuts = range(0, count * size, size)
    batches = [(rg.tensor(x[i : i + size]), rg.tensor(y[i : i + size])) for i in cuts]
    optimizer = optim.Adam(lr=1e-3)

    @rg.jit
    def step(model: Any, state: Any, batch: Any) -> Any:
        loss, grads = rg.value_and_grad(squares)(model, batch)
        model, state = optimizer.update(model, grads, state)
        return model, state, loss

    start = network(sizes)
    leaves, structure = rg.tree.flatten((start, optimizer.init(start)))

    @rg.jit
    def flat_step(leaves: Any, batch: Any) -> Any:
        model, state = rg.tree.unflatten(structure, leaves)
        loss, grads = rg.value_and_grad(squares)(model, batch)
        return tuple(rg.tree.flatten(optimizer.update(model, grads, state))[0]), loss

    def by_hand(epochs: int) -> tuple[Any, list[float]]:
        model, losses = start, []
        state = optimizer.init(model)
        with rg.no_grad():
            for _ in range(epochs):
                for batch in batches:
                    model, state, loss = step(model, state, batch)
                    losses.append(loss.item())
        return model, losses

    def flat(epochs: int) -> tuple[Any, list[float]]:
        carry: Any = tuple([rg.tensor(leaf.detach().numpy()) for leaf in leaves])
        losses = []
        with rg.no_grad():
            for _ in range(epochs):
                for batch in batches:
                    carry, loss = flat_step(carry, batch)
                    losses.append(loss.item())
        return rg.tree.unflatten(structure, carry)[0], losses

    def shuffled(epochs: int) -> tuple[Any, list[float]]:
        carry: Any = tuple([rg.tensor(leaf.detach().numpy()) for leaf in leaves])
        losses = []
        with rg.no_grad():
            for epoch in range(epochs):
                order = np.random.default_rng([0, epoch]).permutation(len(x))
                for i in cuts:
                    rows = order[i : i + size]
                    carry, loss = flat_step(carry, (rg.tensor(x[rows]), rg.tensor(y[rows])))
                    losses.append(loss.item())
        return rg.tree.unflatten(structure, carry)[0], losses

    def fitted(data: Any, **options: Any) -> Way:
        def way(epochs: int) -> tuple[Any, list[float]]:
            run = rg.train.fit(
                start, squares, data, optimizer=optim.Adam(lr=1e-3), epochs=epochs,
                progress=False, **options,
            )  # fmt: skip
            return run.model, run.history["loss"]

        return way

    return {
        "by hand": by_hand,
        "by hand, flat": flat,
        "by hand, shuffled": shuffled,
        "fit, a list": fitted(batches),
        "fit, arrays": fitted((x, y), batch_size=size, shuffle=False),
        "fit, shuffled": fitted((x, y), batch_size=size),
    }


def bits(model: Any) -> list[bytes]:
    return [leaf.detach().numpy().tobytes() for leaf in rg.tree.flatten(model)[0]]


def measure(name: str, turns: int) -> None:
    sizes, size, count, short, long = MODELS[name]
    found = ways(sizes, size, count)
    model, losses = found["by hand"](2)
    times: dict[str, dict[int, float]] = {}
    for way in found:
        times[way] = {short: float("inf"), long: float("inf")}
    for _ in range(turns):
        for way, run in found.items():
            for epochs in (short, long):
                began = time.process_time()
                run(epochs)
                times[way][epochs] = min(times[way][epochs], time.process_time() - began)
    print(f"{name}: layers {sizes}, batches of {size}")
    for way, run in found.items():
        step = (times[way][long] - times[way][short]) / ((long - short) * count)
        other, values = run(2)
        same = "same bits" if (bits(other), values) == (bits(model), losses) else "another order"
        print(f"  {way:17} {step * 1e6:9.2f} us a step  {times[way][long]:.3f} s in all  {same}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with rg.num_threads(options.threads), rg.flush_subnormals():
        for name in MODELS:
            measure(name, options.turns)


if __name__ == "__main__":
    main()
