"""Take the pictures of the explorer in docs/images: `python -m scripts.screenshots [NAME ...]`.

Made by the explorer itself in a headless Chromium, of the models that are described here, so that a
picture is of what the page shows now. Needs the extra `browser`, and Pillow for the animation.
`--compare FOLDER` also takes pictures of the same models in Netron, Model Explorer and TensorBoard,
where these are installed, into a folder that is not part of the repository (`docs/explorer.md`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import retrograd as rg
from examples import diffusion
from retrograd import nn, optim
from retrograd.train.gpt import GPT, GPTConfig, token_loss
from scripts import other_viewers
from tests.viz.browsing import chromium_path

FOLDER = Path(__file__).parent.parent / "docs" / "images"
SIZE, WIDE = (1280, 720), (1600, 900)
FRAME = 900, 520  # pixels of the animation
SHOWN, HELD = 1100, 2600  # milliseconds of a step, and of the last one

OPTIONS = ["--no-sandbox", "--enable-unsafe-swiftshader"]  # Model Explorer draws by WebGL

Shot = Callable[[Browser, Path], None]


# -- what is drawn ---------------------------------------------------------------------------------


def worked_example(a: rg.Tensor, b: rg.Tensor, d: rg.Tensor) -> rg.Tensor:
    return rg.relu(a * b + d)


def neuron(x1: Any, x2: Any, w1: Any, w2: Any, b: Any) -> Any:
    """The neuron of micrograd's lecture."""
    n = x1 * w1 + x2 * w2 + b
    return rg.tanh(n)


def classifier() -> tuple[rg.Graph, tuple[Any, ...]]:
    """Three layers on flowers, and the cross-entropy."""
    g = rg.random.Generator(0)
    model = nn.Sequential(
        nn.Linear(4, 16, generator=g), nn.ReLU(), nn.Linear(16, 16, generator=g), nn.ReLU(),
        nn.Linear(16, 3, generator=g),
    )  # fmt: skip

    def loss(model: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(model(x), y)

    given = model, g.normal((32, 4)), rg.arange(32) % 3
    return rg.trace(loss, *given), given


class Convolutional(nn.Module):
    """Two convolutions with normalization and pooling, and a linear layer."""

    def __init__(self, g: rg.random.Generator) -> None:
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, generator=g)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, generator=g)
        self.norm2 = nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 2 * 2, 10, generator=g)

    def forward(self, x: Any) -> Any:
        f = nn.functional
        x = f.max_pool2d(rg.relu(self.norm1(self.conv1(x))), 2)
        x = f.max_pool2d(rg.relu(self.norm2(self.conv2(x))), 2)
        return self.head(x.reshape((x.shape[0], -1)))


def convolutional() -> tuple[rg.Graph, tuple[Any, ...]]:
    g = rg.random.Generator(0)

    def loss(model: Any, x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(model(x), y)

    given = Convolutional(g), g.normal((16, 1, 8, 8)), rg.arange(16) % 10
    return rg.trace(loss, *given), given


def gpt() -> tuple[rg.Graph, tuple[Any, ...]]:
    """Four layers."""
    model = GPT(GPTConfig(depth=4, width=64), rg.random.Generator(0))
    tokens = rg.tensor(np.random.default_rng(0).integers(0, 27, (2, 16)).astype(np.int32))
    given = model, tokens, tokens
    return rg.trace(token_loss, *given), given


def training_step() -> tuple[rg.Graph, tuple[Any, ...]]:
    """A step of the same GPT: gradients cut off by their norm, then AdamW."""
    _, (model, tokens, _) = gpt()
    opt = optim.AdamW(lr=1e-3)

    def train_step(model: Any, state: Any, x: Any, y: Any) -> Any:
        loss, grads = rg.value_and_grad(token_loss)(model, x, y)
        grads, _ = optim.clip_by_norm(grads, 1.0)
        return loss, *opt.update(model, grads, state)

    given = model, opt.init(model), tokens, tokens
    return rg.trace(train_step, *given), given


def two_runs() -> Any:
    """The loss of a diffusion model before and after 200 steps of training, on the same noise."""
    g = rg.random.Generator(0)
    model = diffusion.Denoiser(g)
    opt = optim.Adam(lr=2e-3)

    @rg.jit
    def step(model: Any, state: Any, g: Any) -> Any:
        _, grads = rg.value_and_grad(lambda model: diffusion.loss(model, g))(model)
        return *opt.update(model, grads, state), g

    def noise_loss(model: Any, x: Any, t: Any, noise: Any) -> Any:
        kept = diffusion.KEPT[t][:, None]
        noisy = rg.sqrt(kept) * x + rg.sqrt(1.0 - kept) * noise
        return ((model(noisy, t) - noise) ** 2).mean()

    trained, state, h = model, opt.init(model), rg.random.Generator(1)
    for _ in range(200):
        trained, state, h = step(trained, state, h)
    n = diffusion.BATCH
    batch = diffusion.moons(h, n), h.randint(0, diffusion.TIMES, (n,)), h.normal((n, 2))
    graph = rg.trace(noise_loss, model, *batch)
    return rg.compare(graph, inputs=((model, *batch), (trained, *batch)))


# -- pictures --------------------------------------------------------------------------------------


def opened(browser: Browser, path: Path, **options: Any) -> Page:
    width, height = options.pop("size", SIZE)
    page = browser.new_page(viewport={"width": width, "height": height}, **options)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    return page


def saved(page: Page, name: str) -> None:
    page.wait_for_timeout(400)
    page.screenshot(path=FOLDER / f"explorer-{name}.png")
    page.close()


def found(page: Page, name: str) -> None:
    """Go to a node by its name."""
    page.get_by_label("Search", exact=True).fill(name)
    page.get_by_label("Search", exact=True).press("Enter")
    page.wait_for_timeout(300)


def scalar(browser: Browser, folder: Path) -> None:
    """The backward pass of relu(a * b + d) at its last step."""
    graph = rg.trace(worked_example, *[rg.spec(())] * 3)
    graph.to_html(folder / "scalar.html", inputs=(2.0, -3.0, 10.0))
    page = opened(browser, folder / "scalar.html")
    page.keyboard.press("f")
    page.keyboard.press("s")
    page.get_by_role("button", name="To the end").click()
    page.wait_for_timeout(300)
    page.evaluate("() => { explorer.app.view.fit(); }")
    saved(page, "step")


def classified(browser: Browser, folder: Path) -> None:
    """A classifier, one weight selected."""
    graph, given = classifier()
    graph.to_html(folder / "classifier.html", *given)
    page = opened(browser, folder / "classifier.html")
    saved(page, "classifier")


def paths(browser: Browser, folder: Path) -> None:
    """The gradient of a GPT, and all that lies between its loss and one of its weights."""
    graph, given = gpt()
    graph.to_html(folder / "gpt.html", *given)
    page = opened(browser, folder / "gpt.html")
    found(page, "blocks[3].attention.key.weight")
    page.get_by_role("tab", name="Parameters").click()
    page.evaluate("() => { explorer.app.view.zoom(0.75); }")
    saved(page, "gpt")


def images(browser: Browser, folder: Path) -> None:
    graph, given = convolutional()
    graph.to_html(folder / "cnn.html", *given)
    saved(opened(browser, folder / "cnn.html", size=(1280, 960)), "cnn")


def lanes(browser: Browser, folder: Path) -> None:
    """A training step: forward, backward, update."""
    graph, given = training_step()
    graph.to_html(folder / "training.html", *given)
    saved(opened(browser, folder / "training.html", size=WIDE), "training-step")


def compared(browser: Browser, folder: Path) -> None:
    """Where the values of two runs of a diffusion model part."""
    two_runs().to_html(folder / "runs.html")
    page = opened(browser, folder / "runs.html", size=WIDE)
    page.evaluate("() => { explorer.app.view.fit(); }")
    saved(page, "compare")


def phone(browser: Browser, folder: Path) -> None:
    graph, given = classifier()
    graph.to_html(folder / "phone.html", *given)
    options = {"device_scale_factor": 2, "has_touch": True, "is_mobile": True}
    saved(opened(browser, folder / "phone.html", size=(390, 780), **options), "phone")


def dark(browser: Browser, folder: Path) -> None:
    graph, given = gpt()
    graph.to_html(folder / "dark.html", *given)
    page = opened(browser, folder / "dark.html", size=WIDE, color_scheme="dark")
    page.evaluate("() => { explorer.app.view.fit(); }")
    saved(page, "dark")


def stepping(browser: Browser, folder: Path) -> None:
    """The backward pass of a neuron, step by step, as an animation."""
    from PIL import Image

    graph = rg.trace(neuron, *[rg.spec(())] * 5)
    given = 2.0, 0.0, -3.0, 1.0, 6.8813735870195432
    graph.to_html(folder / "neuron.html", inputs=given)
    page = opened(browser, folder / "neuron.html", size=FRAME)
    page.add_style_tag(content="header, .sidebar, .legend { display: none !important }")
    page.keyboard.press("f")
    page.keyboard.press("s")
    frames = []
    count = page.evaluate("() => explorer.app.model.doc.steps.length")
    for k in range(count):
        page.wait_for_timeout(300)
        page.evaluate("() => { explorer.app.view.resize(); explorer.app.view.fit(); }")
        page.wait_for_timeout(200)
        page.screenshot(path=folder / f"{k}.png")
        frames.append(Image.open(folder / f"{k}.png").convert("RGB"))
        page.get_by_role("button", name="One step forward").click()
    page.close()
    colours = frames[-1].quantize(128)  # the same in all frames
    small = [f.quantize(palette=colours, dither=Image.Dither.NONE) for f in frames]
    small[0].save(
        FOLDER / "backward.gif", save_all=True, append_images=small[1:], loop=0, optimize=True,
        duration=[SHOWN] * (len(small) - 1) + [HELD],
    )  # fmt: skip


SHOTS: dict[str, Shot] = {
    "scalar": scalar, "classifier": classified, "gpt": paths, "cnn": images,
    "training-step": lanes, "compare": compared, "phone": phone, "dark": dark,
    "backward": stepping,
}  # fmt: skip


def main(names: list[str]) -> None:
    path = chromium_path()
    if path is None:
        raise SystemExit("there is no Chromium here")
    others = Path(names[names.index("--compare") + 1]) if "--compare" in names else None
    chosen = [n for n in names if n in SHOTS] or ([] if others else list(SHOTS))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        for shot in chosen:
            SHOTS[shot](browser, Path(name))
            sys.stdout.write(f"{shot}\n")
        if others is not None:
            models = {"classifier": classifier(), "cnn": convolutional(), "gpt": gpt()}
            other_viewers.compare(browser, models, others)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
