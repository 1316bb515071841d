"""Executors: the ways to run a graph. All give the same bits, as the bits of an operation are a
function of the operation and its inputs, never of what it is fused with."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.runtime.executors.bytecode_kernels import Steps

# Few graphs are so long that they are run as bytecode.
LATER_NAMES = {
    "Steps": "retrograd.runtime.executors.bytecode_kernels",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = ["Steps"]
