"""Every error retrograd raises on purpose.

Each class derives from `RetrogradError` and from the built-in exception a Python programmer would
expect, so that `except ValueError` keeps working. A message says what was asked, what was received
(op, shapes, dtypes, node name, source line), what was expected, and the remedy.
"""

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np


def near(name: str, known: Iterable[str], count: int = 1) -> list[str]:
    """The known names that are most like one that there is not, whatever their case."""
    folded: dict[str, str] = {}
    for k in known:
        folded.setdefault(k.casefold(), k)
    return [folded[k] for k in difflib.get_close_matches(name.casefold(), folded, count)]


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that there is not: the known one that is most like it."""
    found = near(name, known)
    return f"; did you mean {found[0]!r}?" if found else ""


class RetrogradError(Exception):
    """Base class of all errors raised on purpose by retrograd."""


class ShapeError(RetrogradError, ValueError):
    """Shapes, axes or sizes that do not fit the operation."""


class AxisError(ShapeError, IndexError):
    """An axis that an array does not have."""


class DTypeError(RetrogradError, TypeError):
    """Data types that do not fit the operation."""


class OptionError(RetrogradError, ValueError):
    """An option or hyperparameter with a value it does not take."""


class ArgumentError(RetrogradError, TypeError):
    """An argument of the wrong kind, or a function that takes other arguments than it is given."""


class IndexRangeError(RetrogradError, IndexError):
    """An index outside the axis it selects from. `reason` is the message without the place."""

    def __init__(self, message: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class IndexKindError(DTypeError, IndexError):
    """An index that is neither an integer nor a slice, nor an array of integers or booleans."""


class LinAlgError(RetrogradError, np.linalg.LinAlgError):
    """A matrix that an operation of linear algebra cannot do anything with: one that is singular,
    not positive definite, or for which an iteration did not converge. Also NumPy's error of this
    name, thus a `ValueError`. `reason` is the message without the place.
    """

    def __init__(self, message: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class GradientError(RetrogradError, RuntimeError):
    """A gradient that was asked for but is not defined."""


class TraceError(RetrogradError, RuntimeError):
    """A traced value was used where a number is needed, or outside of its trace."""


class DonatedError(RetrogradError, RuntimeError):
    """A tensor was used after its memory had been donated to a compiled function."""


class CycleError(RetrogradError, ValueError):
    """A graph that must be acyclic has a cycle; the message names it."""


class StaleTapeError(RetrogradError, RuntimeError):
    """A handle of a tape that has been reset, or that belongs to another tape."""


class NonFiniteError(RetrogradError, FloatingPointError):
    """A NaN or an infinity was computed while checks were on. Where the operation is known, `node`
    is its node of the graph, and `index` the place of the first such element in its result."""

    def __init__(
        self, message: str = "", node: Any = None, index: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(message)
        self.node = node
        self.index = index


class FormatError(RetrogradError, ValueError):
    """A file or text that is damaged or of an unknown format; the message says what and where."""


class MemoryLimitError(RetrogradError, MemoryError):
    """A program that would need more memory than there is; raised before it runs."""


class LoopLimitError(RetrogradError, RuntimeError):
    """A loop that went on for more steps than it was allowed."""


class WorkerError(RetrogradError, RuntimeError):
    """A worker process of a data loader that has ended, or an exception there that cannot be raised
    here."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """A worker process that has not made a batch in time."""


class DistributedError(RetrogradError, RuntimeError):
    """Processes that run one program together, of which one has ended or does something else than
    the others. The message names it."""


class DistributedTimeoutError(DistributedError, TimeoutError):
    """A process that the others have waited for longer than they were told to."""


class BackendError(RetrogradError, RuntimeError):
    """A backend that is unknown, not installed, or cannot run the graph."""


class RecompilationWarning(UserWarning):
    """A `jit` function was compiled again, for the ninth time or with `explain=True`; the message
    says why."""


class SubnormalWarning(RuntimeWarning):
    """A compiled program met numbers too small to be normal in many calls, and that they are
    computed exactly takes much of its time; said once for a program. The message says how much, and
    what can be done: `rg.flush_subnormals`."""


class HistoryWarning(UserWarning):
    """A history that grows, or is lost.

    Results of a `jit` function that require gradients have been its arguments many times in a row,
    so that the memory of all these calls is kept; or `float()` of a tensor that requires a gradient
    was asked for, which is a constant to what is computed with it (`item()`, by which losses are
    logged, is not warned of). The message says what can be done."""
