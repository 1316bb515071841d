"""Make the notebooks of `examples/`, with outputs: `python -m scripts.notebooks [NAME ...]`.

Needs nbclient and ipykernel (the extra `test`). Outputs have no times, paths, host names or random
ids, so that a notebook differs from the one before where what it shows differs.
"""

from __future__ import annotations

import sys

from scripts.notebooks.building import NAMES, executed, path_of, written


def main(names: list[str]) -> None:
    for name in names or NAMES:
        path_of(name).write_text(written(executed(name)), encoding="utf-8")
        sys.stdout.write(f"{path_of(name).name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
