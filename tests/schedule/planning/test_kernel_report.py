"""A plan as data: which nodes each kernel has, and the memory in use at each moment."""

import retrograd as rg
from retrograd.ir import Dim, float32, spec
from retrograd.schedule.planning.kernel_report import arena_report, kernel_reports
from retrograd.schedule.planning.plan import KernelPlan

N = Dim("N")


def f(x, y):
    z = rg.exp(x) @ rg.sin(y)
    return rg.cumsum(z * z, 0).sum()


def test_every_node_is_in_one_kernel() -> None:
    plan = KernelPlan(rg.trace(f, *[spec((12, 12), float32)] * 2))
    found = kernel_reports(plan)
    assert len(found) == len(plan.kernels)
    nodes = [n for k in found for n in k.nodes]
    assert len(nodes) == len(set(nodes))
    assert set(plan.graph.body) <= {*nodes, *(b.node for b in plan.constants)}
    for report, kernel in zip(found, plan.kernels, strict=True):
        assert report.nodes[: len(kernel.nodes)] == kernel.nodes
        assert kernel in plan.tile_groups[report.tile_group].kernels


def test_numbers_that_are_not_known() -> None:
    plan = KernelPlan(rg.trace(f, *[spec((N, N), float32)] * 2))
    for k in kernel_reports(plan, measured=[5.0] * len(plan.kernels)):
        assert k.bytes is None
        assert k.least is None
        assert k.measured == 5
    for k in kernel_reports(plan, {"N": 10}):
        assert k.bytes
        assert k.least
        assert k.measured is None


def test_memory_over_time() -> None:
    """What lives at a moment adds up to what is in use; no more is reserved than there ever is."""
    plan = KernelPlan(rg.trace(f, *[spec((N, N), float32)] * 2))
    for n in (3, 40):
        found = arena_report(plan, {"N": n})
        assert found.lives
        for moment, used in enumerate(found.used):
            assert used == sum(b for _, first, last, b in found.lives if first <= moment <= last)
        assert max(found.used) <= found.peak
        sizes = {node.shape: size for node, _, _, size in found.lives}
        assert sizes[N, N] == 4 * n * n
