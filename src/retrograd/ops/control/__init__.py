"""Control flow: operations that hold graphs, and repeat or choose them.

`scan` repeats a graph a given number of times, `while_loop` until a condition fails, `cond` runs
one of two graphs, and `sized` runs a graph with a symbolic size that becomes known on the way. The
graphs are closed: what they use is among their inputs. Their rules differentiate and batch the
graphs inside, so what comes out is made of the same four operations, and every order exists.

`draw` holds no graph, but stands for one: the formula of a random sample.

`dag_scan` goes through the nodes of a directed acyclic graph; its derivatives are `dag_scan` too.

`matrix_function` holds the function of numbers that a matrix is put into.

`pure_callback` holds a function in Python, and calls it.

Importing this package registers them all.
"""

from retrograd.ops.control.cond import Cond
from retrograd.ops.control.custom import Custom
from retrograd.ops.control.dag_scan import DagScan
from retrograd.ops.control.draw import Draw
from retrograd.ops.control.dynamic_size import Sized
from retrograd.ops.control.matrix_function import MatrixFunction
from retrograd.ops.control.pure_callback import PureCallback
from retrograd.ops.control.scan import Scan
from retrograd.ops.control.while_loop import WhileLoop

__all__ = [
    "Cond",
    "Custom",
    "DagScan",
    "Draw",
    "MatrixFunction",
    "PureCallback",
    "Scan",
    "Sized",
    "WhileLoop",
]
