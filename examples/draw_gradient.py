"""Draw the gradient graph of a small network: `python examples/draw_gradient.py [FILE]`.

The ending of the file says how: .svg is a picture, .html a page to search and click through, .dot
text for Graphviz. Without a file, docs/images/gradient.svg is drawn, which the README shows.
"""

import sys
from pathlib import Path

import retrograd as rg
from retrograd.viz import draw


def loss(x, w, b, target):
    """The mean squared error of one layer."""
    y = rg.relu(x @ w + b)
    return rg.mean((y - target) ** 2)


def main() -> None:
    batch = rg.Dim("N")
    graph = rg.trace(loss, rg.spec((batch, 4)), rg.spec((4, 3)), rg.spec((3,)), rg.spec((batch, 3)))
    gradient = graph.gradient(wrt=["w", "b"])
    default = Path(__file__).parents[1] / "docs" / "images" / "gradient.svg"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    draw(gradient, path, outputs=["∂loss/∂w", "∂loss/∂b"])
    print(f"{len(gradient.nodes)} nodes drawn in {path}")


if __name__ == "__main__":
    main()
