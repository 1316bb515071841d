"""The optional accelerators: every C file of `retrograd/accelerate` becomes an extension module.

Built against the stable ABI, so one wheel serves every Python from 3.11 on, and every NumPy 2.
Without a C compiler, or where the stable ABI does not exist (Python without the global lock), the
package installs as pure Python. Everything else is in `pyproject.toml`.
"""

import sys
import sysconfig
from pathlib import Path

import numpy
from setuptools import Extension, setup

FOLDER = Path("src/retrograd/accelerate")
STABLE = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            f"retrograd.accelerate._{source.stem}",
            [source.as_posix()],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            include_dirs=[numpy.get_include()],
            depends=[header.as_posix() for header in sorted(FOLDER.glob("*.h"))],
            py_limited_api=True,
            optional=True,
        )
        for source in sorted(FOLDER.glob("*.c"))
        if STABLE
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
