"""Build the site: `python -m scripts.site [FOLDER]`. Fails where anything is to be warned of."""

from __future__ import annotations

import logging
import sys

from mkdocs.commands.build import build
from mkdocs.config import load_config

from scripts.site.entries import ROOT


def main(folder: str | None = None) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    options = {"site_dir": folder} if folder else {}
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, **options)
    build(config)
    print(f"{config.site_dir}/index.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
