"""`Trait`: what is true of an op, declared on the op and nowhere else.

Passes, the scheduler and code generation ask `Trait.VIEW in node.prim.traits` where they would
otherwise keep lists of names; an op that is added later is then known to all of them.
"""

from __future__ import annotations

from enum import Enum


class Trait(Enum):
    """A property that passes and backends ask for. The value says what it means."""

    # Where the elements come from.
    VIEW = "The result holds elements of the inputs, at places known from the attributes alone."
    STRIDED = "A view that memory gives by strides alone, none of them negative."
    IDENTITY = "The result is the first input."
    INPUT = "The value is given: a graph input, or an array at hand in a recording."
    LEAF = "There are no inputs, and the value is made where it is read."
    READS_MANY = "One element of the result reads many of an input, or the op needs memory."
    CONTROL = "The op runs the graphs that it holds."
    # Which bits the result has.
    DETERMINED = "Nothing is rounded: the bits are the same however the result is computed."
    ROUNDED_ONCE = "IEEE 754 says which bits, in every real dtype but half precision."
    UNROUNDED = "The result is exact in the dtype of the inputs, half precision included."
    HANDS_ON = "A NaN or an infinity in the result was there before."
    # Algebra.
    REAL_LINEAR = "Linear with real coefficients: it acts on real and imaginary parts alike."
    COMMUTATIVE = "The two inputs may change places without changing a bit."
    PRODUCT = "A product: zero where a factor is."
    EVEN = "Smooth of `|x|` where x is 0, as a product or an even function."
    # What it costs.
    FREE = "Nothing is computed: the op names, repeats, moves or reinterprets."
    CHEAP = "Cheaper to compute twice than to store and load."
    DIVISION = "As slow as a division or a root."
    TRANSCENDENTAL = "A function that hardware has no single instruction for."
    EXPENSIVE = "Takes long for the size of its result: a contraction or a factorisation."
    KEPT = "Eager gradients keep the result rather than compute it again."
    # What has to be checked.
    SIZED = "Whether the inputs fit depends on the values of symbolic sizes."

    __hash__ = object.__hash__  # members are compared by identity, and passes ask often


Traits = frozenset[Trait]
