"""LLVM's text to PTX, by LLVM's own target for NVIDIA's devices."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from retrograd.errors import BackendError
from retrograd.shared import lock

TRIPLE = "nvptx64-nvidia-cuda"
LEAST = 70  # compute capability 7.0: threads of a warp go their own ways, shuffles name theirs
# Text for one of these runs on all devices above it; kernels use nothing that came later, and LLVM
# ends the process where a version of the language does not know a target.
TARGETS = (70, 75, 80)
VERSION = "ptx70"  # of the language; drivers from 2020 on know it
_LOCK = lock(61)
_machines: dict[int, Any] = {}


def ptx_of(text: str, capability: int) -> str:
    """The PTX of a module, for devices of this compute capability (80 is 8.0) and above. Products
    and sums are not contracted: each has its rounding (`.rn`)."""
    with _LOCK:
        machine = _machines.get(capability) or _machine(capability)
        module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\n{text}')
        module.data_layout = str(machine.target_data)
        found: str = machine.emit_assembly(module)
    return found


def _machine(capability: int) -> Any:
    if capability < LEAST:
        raise BackendError(
            f"the cuda backend needs compute capability 7.0 (Volta) or above, and this device has "
            f"{capability // 10}.{capability % 10}"
        )
    try:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple(TRIPLE)
    except RuntimeError as error:
        raise BackendError(f"the LLVM of llvmlite here has no target {TRIPLE}: {error}") from None
    known = max(c for c in TARGETS if c <= capability)
    machine = target.create_target_machine(cpu=f"sm_{known}", features=f"+{VERSION}", opt=3)
    _machines[capability] = machine
    return machine
