"""The formulas of `ops/special/portable.py` in registers: no operation is fused with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.codegen.math.double_precision import Registers, special
from retrograd.codegen.op_builder import emits
from retrograd.ops.elementwise import Elementwise
from retrograd.ops.special import portable


def _enter(op: Elementwise, f: Callable[..., Any]) -> None:
    emits(op)(special(op.name, lambda x: f(Registers(), x)))


_enter(portable.portable_log, portable.log)
_enter(portable.portable_exp, portable.exp)
_enter(portable.portable_atan, portable.atan)
_enter(portable.portable_log_factorial, portable.log_factorial)
