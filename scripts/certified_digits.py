"""Digits with proofs: clean, attacked and verified accuracy of an MLP and a CNN that are trained
here, drawn to docs/images/certified-digits.svg, with a table in docs/proving.md:
`python -m scripts.certified_digits` (`--samples 100` takes a part of the test set).

Training adds the worst case within eps, by interval bounds (Gowal et al., arXiv:1810.12715), so
that there is something to prove.
"""

from __future__ import annotations

import argparse
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg

nn, F = rg.nn, rg.nn.functional
EPSILONS = (1, 2, 3, 4, 5, 6, 7, 8)  # of 255
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "certified-digits.svg"
Array = np.ndarray[Any, Any]


def models() -> dict[str, Any]:
    """The networks, by name: an MLP 64-100-100-10, twice, and a CNN of two convolutions."""
    rg.manual_seed(0)

    def mlp() -> Any:
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(),
            nn.Linear(100, 10),
        )  # fmt: skip

    return {
        "MLP, trained as usual": mlp(),
        "MLP": mlp(),
        "CNN": nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10),
        ),
    }  # fmt: skip


def worst_case(model: Any, x: Any, labels: Any, eps: float) -> Any:
    """Scores where the label's is as small as it can be within eps, and all others as large."""
    low, high = (x - eps).clip(0, 1), (x + eps).clip(0, 1)
    centre, radius = (low + high) / 2, (high - low) / 2
    for layer in model:
        if isinstance(layer, nn.ReLU):
            low, high = F.relu(centre - radius), F.relu(centre + radius)
            centre, radius = (low + high) / 2, (high - low) / 2
        elif isinstance(layer, nn.Linear):
            centre, radius = layer(centre), F.linear(radius, layer.weight.abs())
        elif isinstance(layer, nn.Conv2d):
            centre = layer(centre)
            radius = F.conv2d(
                radius, layer.weight.abs(), stride=layer.stride, padding=layer.padding
            )
        else:
            centre, radius = layer(centre), layer(radius)
    is_label = F.one_hot(labels, 10).astype(centre.dtype)
    return centre + radius * (1 - 2 * is_label)


def train(
    model: Any, x: Array, y: Array, most: float, epochs: int = 60, eps: float = 10 / 255
) -> Any:
    """The trained model; eps and the share of the worst case grow in the first half."""

    def loss(model: Any, batch: Any, share: Any, radius: Any) -> Any:
        images, labels = batch
        clean = F.cross_entropy(model(images), labels)
        worst = F.cross_entropy(worst_case(model, images, labels, radius), labels)
        return (1 - share) * clean + share * worst

    optimizer = rg.optim.Adam(lr=2e-3)
    state = optimizer.init(model)

    @rg.jit
    def step(model: Any, state: Any, batch: Any, share: Any, radius: Any) -> Any:
        value, gradient = rg.value_and_grad(loss)(model, batch, share, radius)
        model, state = optimizer.update(model, gradient, state)
        return model, state, value

    random = np.random.default_rng(0)
    for epoch in range(epochs):
        grown = min(1.0, 2 * epoch / epochs)
        order = random.permutation(len(x))
        for first in range(0, len(x) - 63, 64):
            at = order[first : first + 64]
            model, state, _ = step(model, state, (x[at], y[at]), most * grown, eps * grown)
    return model


def measure(model: Any, x: Array, y: Array) -> dict[int, tuple[int, int, int, float]]:
    """For each eps how many images are right, withstand the attack, and are proved to; and the
    seconds of a proof."""
    right = model(rg.asarray(x)).numpy().argmax(1) == y
    found = {}
    left = np.flatnonzero(right)  # a counterexample is one for every larger eps
    for n in EPSILONS:
        robust, proved = [], 0
        begun = time.process_time()
        for k in left:
            prop = rg.verify.robust(x[k][None], int(y[k]), n / 255, clip=(0, 1))
            verdict = rg.verify.prove(model, prop, timeout=10)
            proved += verdict.proved
            if verdict.status != "falsified":
                robust.append(k)
        seconds = (time.process_time() - begun) / max(len(left), 1)
        found[n] = int(right.sum()), len(robust), proved, seconds
        left = np.array(robust)
        sys.stdout.write(f"  eps {n}/255: {found[n]}\n")
        sys.stdout.flush()
    return found


def table(results: dict[str, Any], samples: int) -> str:
    """Markdown."""
    lines = [
        "| network | eps | clean | attacked | verified | seconds |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, rows in results.items():
        for n, (right, robust, proved, seconds) in rows.items():
            share = [f"{100 * k / samples:.1f} %" for k in (right, robust, proved)]
            lines.append(f"| {name} | {n}/255 | {' | '.join(share)} | {seconds:.3f} |")
    return "\n".join(lines)


def picture(results: dict[str, Any], samples: int) -> str:
    """Accuracies over eps, a panel for each network."""
    width, height, left, top = 250, 260, 60, 60
    names = ("clean", "withstands attack", "verified")
    colours = ("#64748b", "#d97706", "#2563eb")
    parts = []
    least = min(100 * row[2] / samples for rows in results.values() for row in rows.values())
    floor = max(0.0, 10 * np.floor(least / 10))

    def at(panel: int, n: float, percent: float) -> tuple[float, float]:
        x = left + panel * (width + 60) + width * n / max(EPSILONS)
        return x, top + height * (100 - percent) / (100 - floor)

    for panel, (name, rows) in enumerate(results.items()):
        x0, y0 = at(panel, 0, floor)
        parts.append(text(x0, top - 18, name, 16, "600"))
        for percent in np.arange(floor, 101, 5 if floor >= 50 else 10):
            _, y = at(panel, 0, percent)
            parts.append(f'<path d="M{x0:g} {y:g}h{width}" stroke="#e2e8f0"/>')
            parts.append(text(x0 - 8, y + 4, f"{percent:g} %", 11, anchor="end"))
        for n in EPSILONS:
            parts.append(text(at(panel, n, 0)[0], y0 + 18, f"{n}", 11, anchor="middle"))
        parts.append(text(x0 + width / 2, y0 + 38, "eps, of 255", 12, anchor="middle"))
        for k, colour in enumerate(colours):
            points = [at(panel, n, 100 * row[k] / samples) for n, row in rows.items()]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            dash = ' stroke-dasharray="6 4"' if k == 1 else ""
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
            )
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points
            ]
    for k, (name, colour) in enumerate(zip(names, colours, strict=True)):
        x = left + k * 160
        parts.append(
            f'<rect x="{x}" y="{top + height + 56}" width="14" height="4" fill="{colour}"/>'
        )
        parts.append(text(x + 20, top + height + 62, name, 12))
    size = left + len(results) * (width + 60), top + height + 80
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
    head += f'width="{size[0]}" height="{size[1]}" role="img" aria-label="Accuracy over eps">'
    return "\n".join(
        [head, f'<rect width="{size[0]}" height="{size[1]}" fill="#fff"/>', *parts, "</svg>\n"]
    )


def text(
    x: float, y: float, words: str, size: float, weight: str = "400", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="#1e293b" '
        f'text-anchor="{anchor}" font-family="system-ui, sans-serif">{escape(words)}</text>'
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=360, help="images of the test set")
    options.add_argument("--picture", type=Path, default=PICTURE)
    given = options.parse_args()
    images, labels = rg.data.bundled_digits()
    x = (images / 16).astype(np.float32)[:, None]
    order = np.random.default_rng(1).permutation(len(x))
    test, rest = order[: given.samples], order[360:]
    results = {}
    for name, model in models().items():
        begun = time.process_time()
        share = 0.0 if "usual" in name else 0.5
        trained = train(model, x[rest], labels[rest], share)
        sys.stdout.write(f"{name}: trained in {time.process_time() - begun:.1f} s\n")
        results[name] = measure(trained.eval(), x[test], labels[test])
    given.picture.write_text(picture(results, len(test)), encoding="utf-8")
    sys.stdout.write(table(results, len(test)) + "\n")


if __name__ == "__main__":
    main()
