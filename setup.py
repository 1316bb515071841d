"""The optional accelerators: every C file of `retrograd/accelerate` becomes an extension module.

Built against the stable ABI, so one wheel serves every Python from 3.11 on, and every NumPy 2.
Without a C compiler, or where the stable ABI does not exist (Python without the global lock), the
package installs as pure Python. Everything else is in `pyproject.toml`.
"""

import runpy
import sys
import sysconfig
from pathlib import Path

import numpy
from setuptools import Extension, setup

FOLDER = Path("src/retrograd/accelerate")
STAMP = runpy.run_path(str(FOLDER / "stamp.py"))["stamp_of_sources"](FOLDER)
STABLE = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            f"retrograd.accelerate._{source.stem}",
            [source.as_posix()],
            define_macros=[
                ("Py_LIMITED_API", "0x030B0000"),
                ("RETROGRAD_STAMP", f'"{STAMP}"'),
            ],
            include_dirs=[numpy.get_include()],
            depends=[
                path.as_posix() for path in (*sorted(FOLDER.glob("*.[ch]")), FOLDER / "stamp.py")
            ],
            py_limited_api=True,
            optional=True,
        )
        for source in sorted(FOLDER.glob("*.c"))
        if STABLE
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
