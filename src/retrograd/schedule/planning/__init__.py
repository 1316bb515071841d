"""Graph to kernel plan: what is built, placed in memory, and told of it."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach

if TYPE_CHECKING:
    from retrograd.schedule.planning.kernel_report import arena_report, kernel_reports
    from retrograd.schedule.planning.plan import KernelPlan

# Programs that are found on disk, or interpreted, are not planned.
LATER_NAMES = {
    "arena_report": "retrograd.schedule.planning.kernel_report",
    "kernel_reports": "retrograd.schedule.planning.kernel_report",
    "KernelPlan": "retrograd.schedule.planning.plan",
}
if not TYPE_CHECKING:
    __getattr__ = attach(__name__, {}, LATER_NAMES)

__all__ = ["KernelPlan", "arena_report", "kernel_reports"]
