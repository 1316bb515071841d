"""`Trait`: what is true of an op, declared on the op and nowhere else.

Passes, the scheduler and code generation ask `Trait.VIEW in node.prim.traits` where they would
otherwise keep lists of names; an op that is added later is then known to all of them.
"""

from __future__ import annotations

from typing import Final


class Trait:
    """The properties that passes and backends ask for. Strings, as a member of an `Enum` takes ten
    times as long to look up in Python 3.11."""

    # -- Where the elements come from
    # The result holds elements of the inputs, at places known from the attributes alone.
    VIEW: Final = "view"
    # A view that memory gives by strides alone, none of them negative.
    STRIDED: Final = "strided"
    # The result is the first input.
    IDENTITY: Final = "identity"
    # The value is given: a graph input, or an array at hand in a recording.
    INPUT: Final = "input"
    # Stands for a value that is not at hand: a graph has it among its inputs.
    PLACEHOLDER: Final = "placeholder"
    # The value is an attribute, `value`.
    CONSTANT: Final = "constant"
    # There are no inputs, and the value is made where it is read.
    LEAF: Final = "leaf"
    # One element of the result reads many of an input, or the op needs memory.
    READS_MANY: Final = "reads_many"
    # The op runs the graphs that it holds.
    CONTROL: Final = "control"

    # -- Which bits the result has
    # Nothing is rounded: the bits are the same however the result is computed.
    DETERMINED: Final = "determined"
    # IEEE 754 says which bits, in every real dtype but half precision.
    ROUNDED_ONCE: Final = "rounded_once"
    # The result is exact in the dtype of the inputs, half precision included.
    UNROUNDED: Final = "unrounded"
    # Of integers, which wrap, there is no other result.
    WHOLE: Final = "whole"
    # Comparisons choose the result, an operand, its place or a constant, of zeros and NaN too.
    SELECTING: Final = "selecting"
    # A NaN or an infinity in the result was there before.
    HANDS_ON: Final = "hands_on"

    # -- Algebra
    # Linear with real coefficients: it acts on real and imaginary parts alike.
    REAL_LINEAR: Final = "real_linear"
    # The two inputs may change places without changing a bit.
    COMMUTATIVE: Final = "commutative"
    # A product: zero where a factor is.
    PRODUCT: Final = "product"
    # Smooth of `|x|` where x is 0, as a product or an even function.
    EVEN: Final = "even"

    # -- What it costs
    # Nothing is computed: the op names, repeats, moves or reinterprets.
    FREE: Final = "free"
    # The result is the operand, or a size: no memory is read or written.
    NO_TRAFFIC: Final = "no_traffic"
    # Cheaper to compute twice than to store and load.
    CHEAP: Final = "cheap"
    # As slow as a division or a root.
    DIVISION: Final = "division"
    # A function that hardware has no single instruction for.
    TRANSCENDENTAL: Final = "transcendental"
    # Eager runs compute the ops that lowering makes of it.
    IN_PARTS: Final = "in_parts"
    # Takes long for the size of its result: a contraction or a factorisation.
    EXPENSIVE: Final = "expensive"
    # Eager gradients keep the result rather than compute it again.
    KEPT: Final = "kept"

    # -- What has to be checked
    # Whether the inputs fit depends on the values of symbolic sizes.
    SIZED: Final = "sized"


Traits = frozenset[str]
