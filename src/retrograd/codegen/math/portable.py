"""The formulas of `ops.portable` in registers: no operation is fused with another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.codegen.math.double_precision import special, whole
from retrograd.codegen.math.term import Term, choose
from retrograd.codegen.op_builder import Emit
from retrograd.ops.special import portable


class _Registers:
    """Doubles in registers, as the formulas want them."""

    choose = staticmethod(choose)
    round = staticmethod(whole)

    def sqrt(self, x: Term) -> Term:
        return x.sqrt()


def _emit(name: str, f: Callable[..., Any]) -> Emit:
    return special(name, lambda x: f(_Registers(), x))


FUNCTIONS: dict[str, Emit] = {name: _emit(name, f) for name, f in portable.FORMULAS.items()}
