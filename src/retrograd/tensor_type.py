"""The class `Tensor` as type checkers know it, for the functions that it is made of.

These stand below it and cannot import it; a type checker reads `tensor_type.pyi`, where it is. When
a program runs, nobody looks at the types here.
"""

from typing import Any

Tensor = Any
