"""micrograd's modules on `rg.Value`: the same names, signatures and initial weights.

`from retrograd.micrograd.engine import Value` and `from retrograd.micrograd.nn import MLP` stand
where a program had `from micrograd.engine ...`.
"""

from retrograd.micrograd.nn import MLP, Layer, Module, Neuron
from retrograd.scalar import Value

__all__ = ["MLP", "Layer", "Module", "Neuron", "Value"]
