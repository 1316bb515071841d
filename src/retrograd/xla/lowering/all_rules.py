"""Every file of rules, imported so that the table is whole."""

from retrograd.ir import REGISTRY
from retrograd.ops.linalg.matrix import Given
from retrograd.ops.random.implicit_gradients import IMPLICIT
from retrograd.xla.lowering import (  # noqa: F401
    control,
    conv,
    elementwise,
    fft,
    index,
    leaf,
    linalg,
    matmul,
    random,
    reduce,
    scan,
    scatter,
    shape,
    sort,
    special,
    windows,
)
from retrograd.xla.lowering.host_call import host_call
from retrograd.xla.lowering.rules import RULES, JaxTrace

__all__ = ["RULES", "JaxTrace", "how"]
ON_HOST = (host_call, control.by_native_code)


def how(op: str) -> str:
    """How an op is computed: "native", "host" or "", that is, not at all."""
    factory = REGISTRY[op]
    passed_on = isinstance(factory, type) and issubclass(factory, Given)
    if op == "input" or op in IMPLICIT or passed_on:  # nothing is to be done
        return "native"
    rule = RULES.get(op)
    return "" if rule is None else "host" if rule in ON_HOST else "native"
