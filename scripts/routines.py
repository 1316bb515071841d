"""The routines of matrix products, compiled anew for levels of x86-64, as `make native` does.

    python -m scripts.routines    write src/retrograd/runtime/routines/prebuilt

By LLVM in llvmlite, on Linux on x86-64. The code depends on its version, the results do not.
"""

from __future__ import annotations

import sys

import llvmlite.binding as llvm

from retrograd.codegen.gemm import routine_text
from retrograd.codegen.target import LEVELS
from retrograd.runtime import routines
from retrograd.runtime.assembler import Assembler
from retrograd.runtime.native import platform_name


def main() -> None:
    if platform_name(llvm.get_process_triple()) != routines.PLATFORM:
        sys.exit(f"error: these are compiled on {routines.PLATFORM}")
    routines.PREBUILT.mkdir(exist_ok=True)
    for level in routines.LEVELS:
        assembler = Assembler(level, "")
        for name in routines.ROUTINES:
            text = routine_text(LEVELS[level][0], name)
            code = assembler.compile(text)
            path = routines.place(level, name)
            path.write_bytes(routines.digest(level, text) + code)
            print(f"{len(code):6} bytes  {path.name}")


if __name__ == "__main__":
    main()
