"""The native runtime: thread pool, launcher and conversions of float16, in C.

The C files here are compiled by maintainers (`make native`) into one object file for each platform,
in `prebuilt/`; users need no compiler. LLVM's linker loads it into the process once.
"""

from __future__ import annotations

import functools
from pathlib import Path

from retrograd.errors import BackendError

FUNCTIONS = (
    "rg_drive", "rg_share", "rg_launch", "rg_worker", "rg_reset", "rg_pauses", "rg_flush",
)  # fmt: skip
HALF = ("__truncsfhf2", "__extendhfsf2")  # on x86-64 alone
_PREBUILT = Path(__file__).parent / "prebuilt"


def platform_name(triple: str) -> str:
    """What the object file for LLVM's name of a platform is called, such as "x86_64-linux"."""
    machine, *rest = triple.split("-")
    systems = {"linux": "linux", "darwin": "macos", "macos": "macos", "windows": "windows"}
    found = [name for part in rest for key, name in systems.items() if part.startswith(key)]
    machine = {"arm64": "aarch64"}.get(machine, machine)
    return "-".join([machine, *(found[:1] or rest)])


def object_code(name: str) -> bytes:
    """The object file of a platform; `BackendError` if there is none."""
    try:
        return (_PREBUILT / f"{name}.o").read_bytes()
    except FileNotFoundError:
        raise BackendError(
            f"retrograd's native runtime was not compiled for {name}. It can be: add the platform "
            "to TARGETS in scripts/native.py and run `make native`"
        ) from None


@functools.cache
def addresses() -> dict[str, int]:
    """Where the functions of the runtime are, by name. They are loaded for good: workers of the
    thread pool are inside while the interpreter shuts down, and disposes of what it holds."""
    # llvmlite is loaded when first needed, see compiler.py.
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name = platform_name(llvm.get_process_triple())
    library = llvm.JITLibraryBuilder().add_object_img(object_code(name))
    names = FUNCTIONS + (HALF if name.startswith("x86_64") else ())
    for function in names:
        library.export_symbol(function)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    linker = llvm.create_lljit_compiler(
        target.create_target_machine(jit=True), suppress_errors=True
    )
    tracker = library.link(linker, "native")
    found = {function: int(tracker[function]) for function in names}
    tracker.detach()
    linker.detach()
    return found
