"""Sorting in vectors: networks for few words, quicksort for many.

Both order words by all of their bits, so equal words cannot be told apart, and the result is the
same as that of any other way to sort.
"""

from __future__ import annotations

from functools import cache

from retrograd.backends.llvm.writer import Writer

VECTOR = 512  # bits of a register here; where the CPU's are shorter, LLVM takes several
# Words that a network sorts, by the floats in a vector of the machine: more would take longer than
# radix, or too long to compile.
MOST = {16: 128, 8: 64}
WIDE = 16  # machines of which move lanes under a mask, which quicksort needs


class Vectors:
    """Writes operations on vectors of words."""

    def __init__(self, w: Writer, bits: int) -> None:
        self.w = w
        self.bits = bits
        self.lanes = VECTOR // bits
        self.scalar = f"i{bits}"
        self.type = f"<{self.lanes} x i{bits}>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}i{bits}"

    def place(self, base: str, at: str) -> str:
        return self.w.new(f"getelementptr {self.scalar}, ptr {base}, i64 {at}")

    def call(self, name: str, *args: tuple[str, str]) -> str:
        """An intrinsic that gives a vector of words."""
        symbol = f"llvm.{name}.{self.suffix}" + (".p0" if name.startswith("masked") else "")
        self.w.declare(f"{self.type} @{symbol}({', '.join(kind for kind, _ in args)})")
        return self.w.new(f"call {self.type} @{symbol}({', '.join(map(' '.join, args))})")

    def shuffle(self, a: str, b: str, picks: list[int]) -> str:
        listed = ", ".join(f"i32 {i}" for i in picks)
        return self.w.new(
            f"shufflevector {self.type} {a}, {self.type} {b}, <{self.lanes} x i32> <{listed}>"
        )

    def splat(self, x: str) -> str:
        first = self.w.new(f"insertelement {self.type} poison, {self.scalar} {x}, i64 0")
        return self.shuffle(first, "poison", [0] * self.lanes)

    def load(self, pointer: str, mask: str = "") -> str:
        """Words in memory; the greatest there is, where a mask is off."""
        if not mask:
            return self.w.new(f"load {self.type}, ptr {pointer}, align {self.bits // 8}")
        greatest = f"splat ({self.scalar} -1)"
        at = f"align {self.bits // 8} {pointer}"
        return self.call("masked.load", ("ptr", at), (self.mask, mask), (self.type, greatest))

    def store(self, x: str, pointer: str, mask: str = "") -> None:
        if not mask:
            self.w.line(f"store {self.type} {x}, ptr {pointer}, align {self.bits // 8}")
            return
        name = f"llvm.masked.store.{self.suffix}.p0"
        self.w.declare(f"void @{name}({self.type}, ptr, {self.mask})")
        place = f"ptr align {self.bits // 8} {pointer}"
        self.w.line(f"call void @{name}({self.type} {x}, {place}, {self.mask} {mask})")

    def below(self, count: str, start: int = 0) -> str:
        """Which lanes, counted from a start, are below a count."""
        kind = f"<{self.lanes} x i64>"
        first = self.w.new(f"insertelement {kind} poison, i64 {count}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        wide = self.w.new(f"shufflevector {kind} {first}, {kind} poison, {zeros}")
        steps = ", ".join(f"i64 {start + i}" for i in range(self.lanes))
        return self.w.new(f"icmp sgt {kind} {wide}, <{steps}>")

    def least(self, a: str, b: str) -> str:
        return self.call("umin", (self.type, a), (self.type, b))

    def greatest(self, a: str, b: str) -> str:
        return self.call("umax", (self.type, a), (self.type, b))


def sorted_vectors(v: Vectors, x: list[str]) -> list[str]:
    """Vectors sorted as one row, by Batcher's bitonic network: runs of a length k, up and down in
    turns, are merged by exchanging elements k/2 apart, then k/4, and so on."""
    n, lanes, x = len(x) * v.lanes, v.lanes, list(x)
    k = 2
    while k <= n:
        j = k // 2
        while j:
            if j >= lanes:
                step = j // lanes
                for i in range(len(x)):
                    if not i & step:
                        up = not i * lanes & k
                        ends = v.least(x[i], x[i + step]), v.greatest(x[i], x[i + step])
                        x[i], x[i + step] = ends if up else ends[::-1]
            else:
                for i in range(len(x)):
                    x[i] = _exchanged(v, x[i], i * lanes, j, k)
            j //= 2
        k *= 2
    return x


def _exchanged(v: Vectors, x: str, start: int, j: int, k: int) -> str:
    """A vector whose lanes `j` apart are in order: up, where the bit `k` of a place is off."""
    lanes = range(v.lanes)
    other = v.shuffle(x, "poison", [i ^ j for i in lanes])
    low, high = v.least(x, other), v.greatest(x, other)
    takes_high = [bool(i & j) is not bool((start + i) & k) for i in lanes]
    return v.shuffle(
        low, high, [i + v.lanes * high for i, high in zip(lanes, takes_high, strict=True)]
    )


def network(w: Writer, bits: int, size: int) -> None:
    """The body of a function that sorts `n` words at `a`, which are `size` at most."""
    v = Vectors(w, bits)
    starts = range(0, size, v.lanes)
    masks = [v.below("%n", start) for start in starts]
    places = [v.place("%a", str(start)) for start in starts]
    words = [v.load(p, m) for p, m in zip(places, masks, strict=True)]
    for x, p, m in zip(sorted_vectors(v, words), places, masks, strict=True):
        v.store(x, p, m)
    w.line("ret void")


def partition(w: Writer, bits: int) -> None:
    """The body of a function that moves the words at `a` that are less than a pivot to the front,
    and returns how many there are. The others wait at `b`."""
    v = Vectors(w, bits)
    pivot = v.splat("%pivot")
    whole = w.new(f"and i64 %n, {-v.lanes}")
    loop = w.open_loop(whole, v.lanes, "0", [("i64", "0"), ("i64", "0")])
    left, right = loop.values
    x = v.load(v.place("%a", loop.counter))
    less = w.new(f"icmp ult {v.type} {x}, {pivot}")
    rest = w.new(f"xor {v.mask} {less}, splat (i1 true)")
    # What is written beyond the words that count was read before, or is written again.
    v.store(_packed(v, x, less), v.place("%a", left))
    v.store(_packed(v, x, rest), v.place("%b", right))
    count = _counted(v, less)
    others = w.new(f"sub nsw i64 {v.lanes}, {count}")
    w.close_loop(loop, [w.new(f"add i64 {left}, {count}"), w.new(f"add i64 {right}, {others}")])
    left, right = loop.values
    inside = v.below(w.new(f"sub i64 %n, {whole}"))
    x = v.load(v.place("%a", whole), inside)
    less = w.new(f"and {v.mask} {inside}, {w.new(f'icmp ult {v.type} {x}, {pivot}')}")
    rest = w.new(f"xor {v.mask} {inside}, {less}")
    count, others = _counted(v, less), _counted(v, rest)
    v.store(_packed(v, x, less), v.place("%a", left), v.below(count))
    v.store(_packed(v, x, rest), v.place("%b", right), v.below(others))
    left, right = w.new(f"add i64 {left}, {count}"), w.new(f"add i64 {right}, {others}")
    whole = w.new(f"and i64 {right}, {-v.lanes}")
    loop = w.open_loop(whole, v.lanes)
    x = v.load(v.place("%b", loop.counter))
    v.store(x, v.place("%a", w.new(f"add i64 {left}, {loop.counter}")))
    w.close_loop(loop)
    inside = v.below(w.new(f"sub i64 {right}, {whole}"))
    x = v.load(v.place("%b", whole), inside)
    v.store(x, v.place("%a", w.new(f"add i64 {left}, {whole}")), inside)
    w.line(f"ret i64 {left}")


def _packed(v: Vectors, x: str, mask: str) -> str:
    """The lanes whose mask is on, side by side."""
    nothing = (v.type, "poison")
    return v.call("experimental.vector.compress", (v.type, x), (v.mask, mask), nothing)


def _counted(v: Vectors, mask: str) -> str:
    """How many lanes of a mask are on."""
    kind = f"i{v.lanes}"
    bits = v.w.new(f"bitcast {v.mask} {mask} to {kind}")
    v.w.declare(f"{kind} @llvm.ctpop.{kind}({kind})")
    return v.w.new(
        f"zext {kind} {v.w.new(f'call {kind} @llvm.ctpop.{kind}({kind} {bits})')} to i64"
    )


def quicksort(w: Writer, bits: int, name: str) -> None:
    """The body of `@name.quick(a, b, n, depth, need)`: parts are sorted alone, as far as needed.

    The pivot is the middle of a vector of words, taken at even distances. Where none is less, those
    equal to it are split off. Words that take too many parts are sorted by radix.
    """
    v = Vectors(w, bits)
    few, more, radix, split = (w.label() for _ in range(4))
    w.branch(w.new(f"icmp sle i64 %n, {MOST[WIDE]}"), few, more)
    w.start_block(few)
    w.line(f"call void @{name}.few(ptr %a, i64 %n)")
    w.line("ret void")
    w.start_block(more)
    w.branch(w.new("icmp sle i64 %depth, 0"), radix, split)
    w.start_block(radix)
    w.line(f"call void @{name}.many(ptr %a, ptr %b, i64 %n)")
    w.line("ret void")
    w.start_block(split)
    pivot = _middle(v)
    left = w.new(f"call i64 @{name}.part(ptr %a, ptr %b, i64 %n, {v.scalar} {pivot})")
    none, some, last, on, both = (w.label() for _ in range(5))
    depth = w.new("sub i64 %depth, 1")
    w.branch(w.new(f"icmp eq i64 {left}, 0"), none, some)
    w.start_block(none)
    w.branch(w.new(f"icmp eq {v.scalar} {pivot}, -1"), last, on)
    w.start_block(last)
    w.line("ret void")  # all are equal to the greatest word there is
    w.start_block(on)
    above = w.new(f"add {v.scalar} {pivot}, 1")
    equal = w.new(f"call i64 @{name}.part(ptr %a, ptr %b, i64 %n, {v.scalar} {above})")
    w.jump(both)
    w.start_block(some)
    w.line(f"call void @{name}.quick(ptr %a, ptr %b, i64 {left}, i64 {depth}, i64 %need)")
    w.jump(both)
    w.start_block(both)
    start = w.new(f"phi i64 [ {equal}, %{on} ], [ {left}, %{some} ]")
    rest, need = w.new(f"sub i64 %n, {start}"), w.new(f"sub i64 %need, {start}")
    go, done = w.label(), w.label()
    w.branch(w.new(f"icmp sgt i64 {need}, 0"), go, done)
    w.start_block(go)
    at = v.place("%a", start)
    w.line(f"call void @{name}.quick(ptr {at}, ptr %b, i64 {rest}, i64 {depth}, i64 {need})")
    w.jump(done)
    w.start_block(done)
    w.line("ret void")


def _middle(v: Vectors) -> str:
    """The median of a vector of words at even distances."""
    step = v.w.new(f"udiv i64 %n, {v.lanes}")
    sample = "poison"
    for lane in range(v.lanes):
        at = v.w.new(f"mul i64 {step}, {lane}")
        word = v.w.new(f"load {v.scalar}, ptr {v.place('%a', at)}, align {v.bits // 8}")
        sample = v.w.new(f"insertelement {v.type} {sample}, {v.scalar} {word}, i64 {lane}")
    (x,) = sorted_vectors(v, [sample])
    return v.w.new(f"extractelement {v.type} {x}, i64 {v.lanes // 2}")


@cache
def sizes(bits: int, most: int) -> tuple[int, ...]:
    """The numbers of words for which there are networks."""
    lanes = VECTOR // bits
    return tuple(n for n in (8, 16, 32, 64, 128) if lanes <= n <= most)
