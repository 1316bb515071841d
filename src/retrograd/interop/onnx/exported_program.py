"""Programs of `torch.export` as graphs, by way of PyTorch's own writer of ONNX."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

from retrograd.errors import ArgumentError, BackendError
from retrograd.interop.onnx.load import graph_of
from retrograd.interop.onnx.model import checked
from retrograd.lazy_import import need


def from_exported_program(program: Any) -> Any:
    """What `torch.export.export` made, as a `Graph`: parameters and buffers are parameters under
    their names, and dimensions that are dynamic are sizes with names.

    It needs PyTorch with its package for ONNX (`pip install torch onnxscript`). Raises
    `ArgumentError` for anything else, `BackendError` for operations that PyTorch does not write, or
    for which there is no rule here.

    >>> import torch, retrograd as rg  # doctest: +SKIP
    >>> net, n = torch.nn.Linear(3, 2), torch.export.Dim("n")  # doctest: +SKIP
    >>> x, dims = torch.ones(4, 3), ({0: n},)  # doctest: +SKIP
    >>> program = torch.export.export(net, (x,), dynamic_shapes=dims)  # doctest: +SKIP
    >>> g = rg.interop.from_exported_program(program)  # doctest: +SKIP
    >>> g(rg.ones((7, 3))).shape  # doctest: +SKIP
    (7, 2)
    """
    torch = need("torch", "from_exported_program")
    if not isinstance(program, torch.export.ExportedProgram):
        raise ArgumentError(
            "from_exported_program takes what torch.export.export made, not a "
            f"{type(program).__name__}: torch.export.export(module, example_arguments)"
        )
    need("onnxscript", "from_exported_program")
    need("onnx", "from_exported_program")
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of PyTorch about itself
        try:  # optimizations of PyTorch fold parameters into constants
            made = torch.onnx.export(program, dynamo=True, optimize=False, verbose=False)
        except torch.onnx.OnnxExporterError as error:
            raise BackendError(
                f"PyTorch cannot write the program as ONNX: {error!s:.300}"
            ) from error
    return graph_of(checked(made.model_proto, "the program"), "the program")
