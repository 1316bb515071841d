"""`fmod`, which devices have no instruction for: exact, by long division in binary."""

from __future__ import annotations

from retrograd.codegen.builder import FunctionBuilder


class _Division(FunctionBuilder):
    """The function for floats of so many bits, of which the last `digits` are stored digits."""

    def __init__(self, kind: str, bits: int, digits: int) -> None:
        super().__init__(lambda _: None)
        self.kind, self.whole = kind, f"i{bits}"
        self.bits, self.digits = bits, digits

    def do(self, op: str, a: str | int, b: str | int) -> str:
        return self.new(f"{op} {self.whole} {a}, {b}")

    def choose(self, condition: str, a: str | int, b: str | int) -> str:
        return self.new(f"select i1 {condition}, {self.whole} {a}, {self.whole} {b}")

    def shift_of(self, digits: str) -> str:
        """By how much digits are short of the first place."""
        zeros = self.new(f"call {self.whole} @llvm.ctlz.{self.whole}({self.whole} {digits}, i1 0)")
        return self.do("sub", zeros, self.bits - 1 - self.digits)

    def parts(self, x: str) -> tuple[str, str]:
        """The exponent and the digits of a positive number, the first of which is not zero."""
        exponent = self.do("lshr", x, self.digits)
        small = self.do("icmp eq", exponent, 0)
        stored = self.do("and", x, (1 << self.digits) - 1)
        shift = self.shift_of(stored)
        moved = self.do("shl", stored, self.choose(small, shift, 0))
        return (
            self.choose(small, self.do("sub", 1, shift), exponent),
            self.choose(small, moved, self.do("or", stored, 1 << self.digits)),
        )

    def without(self, digits: str, other: str) -> str:
        """Digits less those of another number, if that is not more."""
        fits = self.do("icmp uge", digits, other)
        return self.choose(fits, self.do("sub", digits, other), digits)

    def divided(self, x: str, y: str, sign: str) -> str:
        """The rest of `x`, which is not less, by `y`."""
        (high, digits), (low, other) = self.parts(x), self.parts(y)
        _, digits = self.repeat_while(
            [(self.whole, self.do("sub", high, low)), (self.whole, digits)],
            lambda v: self.do("icmp sgt", v[0], 0),
            lambda v: [
                self.do("sub", v[0], 1),
                self.do("shl", self.without(v[1], other), 1),
            ],
        )
        digits = self.without(digits, other)
        shift = self.shift_of(digits)
        exponent = self.do("sub", low, shift)
        normal = self.do("icmp sgt", exponent, 0)
        zero = self.do("icmp eq", digits, 0)
        # A number below the normal range has its digits where those of the least normal one are.
        tiny = self.do("icmp slt", low, 1)
        right = self.choose(tiny, self.do("sub", 1, low), 0)
        left = self.choose(normal, shift, self.do("sub", low, 1))
        left = self.choose(self.new(f"or i1 {zero}, {tiny}"), 0, left)
        moved = self.do("lshr", self.do("shl", digits, left), right)
        place = self.do("shl", self.do("sub", exponent, 1), self.digits)
        place = self.choose(zero, 0, self.choose(normal, place, 0))
        found = self.do("or", self.do("add", moved, place), sign)
        return self.new(f"bitcast {self.whole} {found} to {self.kind}")


def _remainder(name: str, kind: str, bits: int, digits: int) -> str:
    w = _Division(kind, bits, digits)
    top = 1 << (bits - 1)
    infinity = ((1 << (bits - 1 - digits)) - 1) << digits
    own = [w.new(f"bitcast {kind} {x} to {w.whole}") for x in ("%a", "%b")]
    x, y = (w.do("and", b, top - 1) for b in own)
    refused = [w.do("icmp eq", y, 0), w.do("icmp uge", x, infinity), w.do("icmp ugt", y, infinity)]
    nan = w.new(f"or i1 {w.new(f'or i1 {refused[0]}, {refused[1]}')}, {refused[2]}")
    at_once = w.new(f"select i1 {nan}, {kind} 0x7FF8000000000000, {kind} %a")
    early = w.new(f"or i1 {nan}, {w.do('icmp ult', x, y)}")
    sign = w.do("and", own[0], -top)
    (found,) = w.either_of(early, kind, lambda: [at_once], lambda: [w.divided(x, y, sign)])
    w.line(f"ret {kind} {found}")
    return f"define internal {kind} @{name}({kind} %a, {kind} %b) #1 {{\n{w.text()}\n}}"


# By name, the definition and the function of LLVM's that it calls.
REMAINDERS = {
    name: (_remainder(name, kind, bits, digits), f"i{bits} @llvm.ctlz.i{bits}(i{bits}, i1)")
    for name, kind, bits, digits in (("rg_fmod", "double", 64, 52), ("rg_fmodf", "float", 32, 23))
}
