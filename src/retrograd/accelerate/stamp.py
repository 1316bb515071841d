"""The stamp of the C sources beside this file, which tells modules that were built from others.

`setup.py` builds it into every module, `check` compares it with `STAMP`. After a change of the C
sources run this file, `python src/retrograd/accelerate/stamp.py`, and build again; a test says so.
It imports nothing of the package, so that `setup.py` can run it.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

STAMP = "6a12f18d"


def stamp_of_sources(folder: Path) -> str:
    """What stands for the C files and headers of a folder."""
    found = 0
    for path in sorted((*folder.glob("*.c"), *folder.glob("*.h"))):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        found = zlib.crc32(path.name.encode() + b"\0" + text, found)
    return f"{found:08x}"


def main() -> None:
    """Write the stamp of the sources into this file."""
    here = Path(__file__)
    line = f'STAMP = "{stamp_of_sources(here.parent)}"'
    text = re.sub(r'^STAMP = ".*"$', line, here.read_text(encoding="utf-8"), flags=re.MULTILINE)
    here.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
