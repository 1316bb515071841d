"""Templates of methods and properties of tensors, and of calls that change one in place."""

from __future__ import annotations

from tests.programs.lines import Entry

# By what they may be given: any number; more than that.
SMOOTH = """abs absolute arctan arcsinh asinh atan cos cosh deg2rad digamma erf erfc exp exp2 expm1
    floor ceil fix frac i0 lgamma nan_to_num neg negative rad2deg relu round sgn sigmoid sign sin
    sinc sinh square tan tanh trunc"""
POSITIVE = "log log1p log2 log10 sqrt rsqrt reciprocal"
INSIDE = "acos arccos arcsin asin atanh arctanh erfinv logit"
BINARY = """add sub subtract mul multiply div divide true_divide copysign hypot arctan2 atan2 fmod
    remainder floor_divide heaviside nextafter xlogy"""
CASTS = "double half long short char byte bool int float bfloat16 contiguous ravel"
COMPARE = "eq ne lt le gt ge less less_equal greater greater_equal not_equal"


def changed(names: str, first: str, call: str, kind: str = "f", traits: str = "") -> list[Entry]:
    """A copy that a method changes."""
    return [
        Entry(first, kind, then=(f"{{it}}.{n}_({call})",), traits=traits) for n in names.split()
    ]


METHODS: dict[str, list[Entry]] = {
    "changes in place": [
        *changed(SMOOTH, "{x}.clone()", ""),
        *changed(POSITIVE, "rg.abs({x}) + 0.5", ""),
        *changed(INSIDE, "rg.tanh({x}) * 0.4 + 0.45", ""),
        *changed(BINARY, "{x}.clone()", "{s}", traits="jumps"),
        *changed(COMPARE, "{x}.clone()", "{s}"),
        *changed("bitwise_and bitwise_or bitwise_xor gcd lcm", "{x} + 0", "{s}", "i"),
        *changed("logical_and logical_or logical_xor", "{x} * 1", "{s:b}", "n"),
        *changed("cumsum cumprod", "{v} * 1.0", "{axis}"), *changed("tril triu", "{M} * 1", "{k}"),
        *changed("clamp_min clamp_max fill", "{x} * 1", "{num}"),
        *changed("lerp", "{x} * 1", "{S}, 0.3"),
        *changed("addcmul", "{x} * 1", "{S}, {S}"),
        *changed("pow float_power", "rg.abs({x})", "1.5"),
        *changed("addcdiv", "{x} * 1", "{S}, rg.abs({S}) + 0.5"),
        *changed("copy", "{x} * 1", "{s:n}"),
        *changed("index_add index_copy", "{v} * 1", "0, {positions:n}, {v}[{positions:n}] * 2"),
        *changed("index_put", "{v} * 1", "({positions:n},), {v}[{positions:n}] * 2, True"),
        *changed("masked_scatter", "{x} * 1", "{mask}, {S}"), *changed("ldexp", "{x} * 1", "{k}"),
        *changed("scatter scatter_add", "{v} * 1", "{axis}, {along}, rg.ones_like({v})"),
        *changed("scatter_reduce", "{v} * 1", "{axis}, {along}, rg.ones_like({v}), 'prod'"),
        *changed("logical_not bitwise_not", "{x} & {s:b}", "", "b"),
        *changed("uniform normal exponential cauchy bernoulli log_normal", "{x} * 0",
                 "generator=rg.random.Generator({seed})"),
        *changed("geometric", "{x} * 0", "0.4, generator=rg.random.Generator({seed})"),
        *changed("random", "{x} * 0", "5, generator=rg.random.Generator({seed})"),
    ],
    "one after the other": [
        Entry("{x} * 1", "f", then=("{it}[{key}] = {it}[{key}] * 2",
                                    "{it}[{slices}] += {it}[{slices}]", "{it} *= {it}")),
        Entry("{v} * 1", "f", then=("w = {it}[::-1]", "{it} += w", "w *= 0.5", "{it} = {it} - w")),
        Entry("{M} * 1", "f", then=("w = {it}.mT", "w[0] = 0.25", "{it} = {it} + 1.0", "w += 1")),
        Entry("{M} * 1", "f",
              then=("w = rg.diagonal({it}, 0, 0, 1)", "w *= 2.0", "u = {it}.reshape((-1,))",
                    "u[:1] = -1.0", "{it} = {it} + rg.sum(w) * 0 + rg.sum(u) * 0.1")),
        Entry("{x} * 1", "n", then=("for k in range(3):", "    {it} = {it} + {x} * k")),
        Entry("{v} * 1", "f",
              then=("for k in range({it}.shape[0]):", "    {it}[k] = {it}[k - 1] * 0.5 + {it}[k]")),
        Entry("{x} * 1", "f",
              then=("with rg.no_grad():", "    w = {it} * 2", "{it} = {it} * w"), traits="jumps"),
    ],
    "methods": [
        *[Entry(f"{{x}}.{n}()", "a")
          for n in CASTS.split()],
        Entry("{x}.type_as({y:a})", "a"), Entry("{x}.to({dtype})", "a"),
        Entry("{x}.view({shape})", "a"),
        Entry("{x}.expand_as({x})", "a"), Entry("{x}.view_as({S})", "a"),
        Entry("{x}.reshape_as({S})", "a"),
        Entry("{x}.new_zeros({newshape})", "a"), Entry("{x}.new_ones({newshape})", "a"),
        Entry("{x}.new_full({newshape}, 3)", "n"), Entry("{x}.new_tensor([1, 0])", "n"),
        Entry("{M}.mH", "m"),
        Entry("rg.broadcast_to({x}, (2, *{x}.shape)).sum_to_size({x}.shape)", "f"),
        Entry("{x}.conj_physical()", "z"), Entry("{v} + {v}.shape[0] * {v}.numel()", "f"),
        Entry("rg.astype(rg.astype({x}, {dtype}), {dtype:a}) == {x}", "a"),
    ],
}  # fmt: skip
