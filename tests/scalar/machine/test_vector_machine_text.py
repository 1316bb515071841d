"""The text of the machine for programs."""

import re

import llvmlite.binding as llvm

from retrograd.scalar.machine.opcodes import COMPARE, OPCODES
from retrograd.scalar.machine.vector_machine_text import MODES, WIDE, batch_text, kinds


def test_llvm_reads_it_and_each_instruction_calls_a_kernel_of_its_own() -> None:
    text = batch_text()
    module = llvm.parse_assembly(text)
    module.verify()
    kernels = {f.name for f in module.functions if f.name.startswith("kernel.")}
    assert kernels == {f"kernel.{i}" for i in kinds().values()}
    cases = dict(re.findall(r"i64 (\d+), label %do\.(\d+)", text))
    assert cases == {str(i): str(i) for i in kinds().values()}


def test_every_operation_has_both_ways_and_plain_ones_lie_side_by_side() -> None:
    names = kinds()
    assert {f"{o.name}{way}" for o in OPCODES for way in ("", ".back")} <= {*names}
    assert {*COMPARE} <= {*names}
    assert {f"{name}.{mode}" for name in WIDE for mode in MODES} <= {*names}
    assert len({*names.values()}) == len(names)
