"""What C is told of classes, modes and tables, for calls that run at once."""

from __future__ import annotations

from collections.abc import Callable

from retrograd.eager import fast_path, listeners
from retrograd.eager.grad_fn import Output, next_number
from retrograd.eager.immediate.function_call import FunctionCall, MovedCall
from retrograd.eager.immediate_base import compiled
from retrograd.eager.leaf import ConcreteLeaf
from retrograd.eager.modes import _BACKEND, _GRAD, _HIDDEN_FROM_TAPES, _TRACING
from retrograd.eager.trace_buffer import CURRENT, NOWHERE
from retrograd.ir import DType, Node
from retrograd.ir.node import _PROVENANCE
from retrograd.ir.source import PLACES
from retrograd.ops.leaf import Constant
from retrograd.tuning import TUNING


def install_immediate(handles: type, begin_run: Callable[[], bool]) -> None:
    """Have C serve the calls of tensors of this class; `begin_run` says whether operations run at
    once from here on."""
    if compiled is None:
        return
    compiled.install(
        (handles, Node, ConcreteLeaf, Output, FunctionCall, MovedCall, DType, Constant),
        CURRENT,
        tuple([
            variable.get
            for variable in (
                _GRAD, _PROVENANCE, _BACKEND, _TRACING, _HIDDEN_FROM_TAPES, listeners.BLOCK,
            )
        ]),
        vars(listeners),
        NOWHERE,
        next_number,
        begin_run,
        PLACES,
        _BACKEND.get(),
        TUNING.remembered_calls,
        TUNING.long_run_calls,
    )  # fmt: skip
    fast_path.compiled.install_immediate(compiled.serve)
