"""Templates of lines, by topic. `draw.py` says what stands in a gap.

Each is in the words of this library; NumPy's and PyTorch's are the same with other names, where
`peers` says so. What they refuse, or what has no such name there, has no peer in that program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tests.programs.draw import Draw
from tests.programs.program import Line


@dataclass(frozen=True)
class Entry:
    template: str
    kind: str = "f"
    peers: str = ""  # "n" and "t": NumPy and PyTorch mean the same by these words
    numpy: str = ""  # other words
    torch: str = ""
    then: tuple[str, ...] = ()
    traits: str = ""


def made(draw: Draw, entry: Entry) -> Line:
    """A line of that template, its gaps filled."""
    whole = "\n".join((entry.template, *entry.then))
    found, names = draw.fill(whole, entry.kind)
    name = draw.fresh()
    gaps = {**found, "it": name}

    def filled(template: str) -> str:
        return re.sub(r"\{(\w+(?::\w)?)\}", lambda m: gaps[m[1]], template)

    text = filled(entry.template)
    then = tuple(f"{filled(t)}" for t in entry.then)
    numpy = torch = None
    if not then:
        if entry.numpy or "n" in entry.peers:
            numpy = as_numpy(filled(entry.numpy or entry.template))
        if entry.torch or "t" in entry.peers:
            torch = as_torch(filled(entry.torch or entry.template))
    return Line(name, text, names, (), then, numpy, torch, frozenset(entry.traits.split()))


NUMPY_NAMES = {"bool": "bool_", "asarray": "asarray", "cumulative_sum": "cumsum",
               "cumulative_prod": "cumprod", "concat": "concatenate"}  # fmt: skip
TORCH_NAMES = {"asarray": "tensor", "expand_dims": "unsqueeze", "permute_dims": "permute",
               "cumulative_sum": "cumsum", "cumulative_prod": "cumprod", "astype": "_astype",
               "atan2": "atan2"}  # fmt: skip


def as_numpy(text: str) -> str:
    return re.sub(r"\brg\.(\w+)", lambda m: f"np.{NUMPY_NAMES.get(m[1], m[1])}", text)


def as_torch(text: str) -> str:
    text = text.replace("axis=", "dim=").replace("keepdims=", "keepdim=")
    text = re.sub(r"\.astype\(", ".to(", text)
    text = re.sub(r"\bF\.", "torch.nn.functional.", text)
    return re.sub(r"\brg\.(\w+)", lambda m: f"torch.{TORCH_NAMES.get(m[1], m[1])}", text)


def peers_of(name: str) -> str:
    """Who has a function of that name."""
    numpy = "n" if hasattr(np, NUMPY_NAMES.get(name, name)) else ""
    return numpy + "t"


def each(
    names: str, template: str, kind: str = "f", peers: str = "nt", traits: str = ""
) -> list[Entry]:
    found = []
    for name in names.split():
        own = "".join(p for p in peers if p in peers_of(name))
        found.append(Entry(template.replace("FN", name), kind, own, traits=traits))
    return found


SMOOTH = """sin cos tanh sinh cosh asinh atan exp exp2 expm1 square negative positive sinc deg2rad
    rad2deg abs"""
OTHER_FLOAT = (
    "floor ceil trunc round sign cbrt sqrt log log1p log2 log10 acos asin atanh reciprocal tan fabs"
)
TORCH_ONE = "sigmoid relu rsqrt erf erfc erfinv lgamma frac logit sgn i0"
ACTIVATIONS = """celu elu gelu hardshrink hardtanh leaky_relu logsigmoid mish relu
    relu6 selu sigmoid silu softplus softshrink softsign tanh tanhshrink"""
SPECIAL = """digamma gammaln erf erfc erfcx log_ndtr ndtr bessel_j0 bessel_j1 bessel_y0 bessel_y1
    i0 i0e i1 i1e k0 k0e k1 k1e cbrt entr exp2 expit expm1 log1p log_expit sinc cosdg cosm1 cotdg
    exp10 exprel sindg tandg
    ellipe ellipk ellipkm1 exp1 expi spence zetac loggamma rgamma gammasgn gamma
    psi ndtri erfinv erfcinv logit"""

COMMON: dict[str, list[Entry]] = {
    "elementwise": [
        *each(SMOOTH, "rg.FN({x})"),
        *each(OTHER_FLOAT, "rg.FN({x})"),
        *each(TORCH_ONE, "rg.FN({x})", peers="t"),
        *each("log sqrt log2 rsqrt reciprocal acosh", "rg.FN(rg.abs({x}) + 1.5)"),
        *each("asin acos atanh erfinv", "rg.FN(rg.tanh({x}) * 0.9)"),
        *each("sin cos tanh exp sqrt sinh abs square negative", "rg.FN({x})", "c"),
        *each("sin exp sqrt abs sign tanh log1p", "rg.FN({x})", "i", peers="t"),
        *each("abs negative square sign positive bitwise_count", "rg.FN({x})", "i", peers="n"),
        *each("isfinite isnan isinf signbit", "rg.FN({x})"),
        *each("real imag conj angle", "rg.FN({x})", "c"),
        *each("real conj angle", "rg.FN({x})", "f", peers=""),
        *each("nan_to_num", "rg.FN({x})"),
        *each("logical_not", "rg.FN({x})", "a"),
        *each("bitwise_invert", "rg.FN({x})", "w", peers=""),
        Entry("rg.astype({x}, {dtype})", "a"),
        Entry("{x}.astype({fdtype})", "a", "nt"),
        Entry("rg.clip({x}, -0.5, 0.75)", "f", "nt"),
        Entry("rg.clip({x}, {y}, {z})", "n", "n"),
        Entry("rg.clamp({x}, min={num})", "f", "t"),
        Entry("rg.where({x:b}, {y:f}, {z:f})", "f", "nt"),
        Entry("rg.where({x:b}, {y:n}, {z:n})", "n", ""),
        Entry("rg.where({x} > 0, rg.log({x}), {y})", "f", "nt"),
        Entry("rg.where({x} > 0, rg.sqrt({x}), 0.0)", "f"),
        Entry("rg.where({x} != 0, {y} / {x}, 1.0)", "f"),
        Entry("rg.where(rg.abs({x}) < 1, rg.acos({x}), rg.sqrt({x}))", "f"),
        Entry("rg.where(rg.isnan({x}), {y}, {x})", "f", "n"),
        Entry("rg.stop_gradient({x})", "z", traits="jumps"),
        Entry("{x}.detach() * {y}", "f", torch="{x}.detach() * {y}", traits="jumps"),
        Entry("rg.polygamma({n}, rg.abs({x}) + 0.5)"),
        Entry("F.threshold({x}, 0.1, {num})", "f", "t"),
        Entry("rg.threshold({x}, 0.1, {num})"),
        Entry("rg.round({x}, decimals={n0})", "f", "nt"),
        Entry("rg.view_as_real({x})", "c", "t"),
        Entry("rg.frexp({x})[0]", "f", "n"),
        Entry("rg.modf({x})[{flag} + 0]", "f", "n"),
    ],
    "activations": [
        *[Entry(f"F.{n}({{x}})", "f", "t") for n in ACTIVATIONS.split()],
        Entry("F.hardsigmoid({x})"),  # PyTorch's gradient has 1/6 in single precision
        *each("softmax log_softmax", "rg.FN({q}, axis={axis})", peers="t"),
        Entry("F.softmin({q}, dim={axis})", "f", "t"),
        Entry("F.gelu({x}, approximate='tanh')", "f", "t"),
        Entry("F.elu({x}, alpha=0.7)", "f", "t"),
        Entry("F.softplus({x}, beta=2.0)", "f", "t"),
        Entry("F.glu(rg.concat([{v}, {v}], axis={axis}), dim={axis})",
              torch="torch.nn.functional.glu(torch.cat([{v}, {v}], dim={axis}), dim={axis})"),
        Entry("F.normalize({q}, dim={axis})", "f", "t"),
        Entry("rg.rms_norm({q}, {row})"), Entry("rg.layer_norm({q}, {row}, {row})"),
        Entry("F.layer_norm({q}, {q}.shape[-1:])", "f", "t"),
    ],
    "special": [
        *each(SPECIAL, "rg.special.FN({x})", peers=""),
        *each("gammaln digamma k0 k1 bessel_y0 exp1 zetac loggamma rgamma",
              "rg.special.FN(rg.abs({x}) + 0.4)", peers=""),
        *each("gammainc gammaincc beta betaln zeta xlogy rel_entr binom poch",
              "rg.special.FN(rg.abs({x}) + 0.3, rg.abs({y}) + 0.6)", peers=""),
        Entry("rg.special.betainc(rg.abs({x}) + 0.3, 1.5, rg.sigmoid({y}))"),
    ],
    "arithmetic": [
        *[Entry(f"{{x}} {op} {{y}}", k, p) for op in "+-*"
          for k, p in (("f", "nt"), ("f", "nt"), ("n", "t"), ("m", "t"), ("i", "n"))],
        *[Entry(f"{{y}} {op} {{x}}", k, "nt") for op in "+-*" for k in "fi"],
        Entry("{x} / (rg.abs({y}) + 0.5)", "f", "nt"), Entry("{x} / {y}", "n", "t"),
        Entry("{x} / {y}", "f", "nt"), Entry("{x} // {y}", "n", "n"), Entry("{x} % {y}", "n", "n"),
        Entry("rg.abs({x}) ** {y}", "f", "nt"), Entry("{x} ** {int}", "f", "nt"),
        Entry("{x} ** {y}", "i", "n"),
        Entry("{int} ** {x}", "f", "nt"),
        Entry("{x} ** 2", "m", "t"),
        Entry("-{x}", "m", "nt"), Entry("abs({x})", "n", "nt"), Entry("~{x}", "w", "nt"),
        *[Entry(f"{{x}} {op} {{y:w}}", "w", "nt") for op in ("&", "|", "^")],
        *[Entry(f"{{x}} {op} {{int}}", "i", "nt") for op in ("<<", ">>")],
        *[Entry(f"{{x}} {op} {{y}}", k, "nt")
          for op in ("<", "<=", ">", ">=", "==", "!=") for k in "fn"],
        *each("maximum minimum hypot logaddexp fmax fmin fmod heaviside "
              "logaddexp2 float_power", "rg.FN({x}, {y:f})", "f"),
        *each("copysign", "rg.FN({x}, {y:f})", traits="jumps"),  # copysign(x, x) is x, at 0 too
        *each("maximum minimum", "rg.FN({x}, {y})", "n", "t"),
        *each("nextafter", "rg.FN({x}, {y:f})", "f", "n"),
        *each("atan2", "rg.FN({x}, {y:f})", "f", "t"),
        *each("remainder floor_divide", "rg.FN({x}, {y:f})", "f", "n"),
        *each("logical_and logical_or logical_xor", "rg.FN({x}, {y:a})", "a", "n"),
        *each("gcd lcm", "rg.FN({x} // 2, {s} // 2)", "i", "n"),  # NumPy: gcd(-2**63, 1) is -1
        Entry("rg.lerp({x}, {S}, {num})", "f", "t"),
        Entry("rg.addcmul({x}, {S}, {S}, value=0.5)", "f", "t"),
        Entry("rg.xlogy({x}, rg.abs({y:f}) + 0.1)", "f", "t"), Entry("rg.ldexp({x}, {k})", "f", ""),
        Entry("rg.isclose({x}, {S})", "f", "nt"), Entry("rg.complex({x}, {S})", "f", "t"),
        Entry("rg.addcdiv({x}, {S}, rg.abs({S}) + 0.5, value={num})", "f", "t"),
        Entry("rg.polar(rg.abs({x}), {S})", "f", "t"),
    ],
    "in place": [
        *[Entry("{x} + 0", k, then=(f"{{it}} {op}= {{y}}",)) for op in "+-*" for k in "fi"],
        Entry("{x} + 0.0", then=("{it} /= 1.5",)),
        Entry("{x} * 1", "n", then=("{it}[{key}] = {num}",)),
        Entry("{x} * 1", "f", then=("{it}[{key}] += {num}",)),
        Entry("{x} * 1", "f", then=("{it}[{slices}] *= {it}[{slices}] + 1",)),
        Entry("{x} * 1", "f", then=("{it}[{slices}] = rg.sin({it}[{slices}])",)),
        Entry("{x} * 1", "n", then=("{it}[{mask}] = 0",)),
        Entry("{x} * 1", "f", then=("{it}[{it} > 0.3] = 0.5",)),
        Entry("{v} * 1", "f",
              then=("w = {it}[0:1]", "{it}[1:] = w", "w += 1.0", "{it} = {it} * w")),
        Entry("{x}.clone()", "f", then=("{it}.add_({y})", "{it}.mul_(0.5)", "{it}.tanh_()")),
        Entry("{x}.clone()", "f", then=("{it}.zero_()", "{it}.add_({x}, alpha=2.0)")),
        Entry("{x}.clone()", "f",
              then=("{it}.masked_fill_({mask}, {num})", "{it}.clamp_(-1.0, 1.0)")),
        Entry("{v}.clone()", "f", then=("{it}.index_fill_(0, {positions:n}, {num})",)),
        Entry("{x}.at[{key}].set({num})", "n"), Entry("{x}.at[{key}].add({num})", "f"),
        Entry("{x}.at[{key}].multiply({num})", "f"), Entry("{x}.at[{key}].max(0.25)", "f"),
        Entry("{x}.at[{key}].min(0.25)", "f"), Entry("{x}.at[{key}].apply(rg.sin)", "f"),
        Entry("{x}.at[{slices}].set({x}[{slices}] * 2)", "m"), Entry("{x}.at[{key}].get()", "m"),
    ],
    "reductions": [
        *each("sum mean prod max min", "rg.FN({x}, axis={axes}, keepdims={flag})", "f", "n"),
        *each("sum max min all any", "rg.FN({x}, axis={axis}, keepdims={flag})", "f", "n"),
        *each("sum prod max min mean", "rg.FN({x}, axis={axes})", "i", "n"),
        *each("sum mean prod", "rg.FN({x}, axis={axes})", "c", "n"),
        *each("sum mean all any", "rg.FN({x}, axis={axes})", "b", "n"),
        *each("amax amin", "rg.FN({q}, dim={axis}, keepdim={flag})", "f", "t"),
        Entry("{x}.sum()", "n", "nt"), Entry("{x}.mean()", "f", "nt"),
        Entry("rg.var({x}, axis={axes}, keepdims={flag})", "f", "n"),
        Entry("rg.std({q}, axis={axis}, keepdims={flag})", "f", "n"),
        Entry("rg.logsumexp({x}, axis={axes}, keepdims={flag})"),
        Entry("rg.vector_norm({x}, axis={axes}, keepdims={flag})",
              numpy="np.linalg.vector_norm({x}, axis={axes}, keepdims={flag})",
              torch="torch.linalg.vector_norm({x}, dim={axes}, keepdim={flag})"),
        Entry("rg.linalg.vector_norm({x}, ord={int}, axis={axes})",
              torch="torch.linalg.vector_norm({x}, ord={int}, dim={axes})"),
        *each("argmax argmin", "rg.FN({q}, axis={axis})", "n"),
        *each("argmax argmin", "rg.FN({q})", "n"),
        *each("nansum nanmean nanmax nanmin nanstd nanprod nanmedian",
              "rg.FN({q}, axis={axis})", "f", "n"),
        *each("count_nonzero", "rg.FN({x}, axis={axes})", "a", "n"),
        *each("ptp median average", "rg.FN({q}, axis={axis})", "f", "n"),
        Entry("rg.quantile({q}, {p}, axis={axis})", "f", "n"),
        Entry("rg.aminmax({q}, dim={axis})[{flag} + 0]", "f", "t"),
        Entry("rg.var_mean({q}, {axis})[0]", "f", "t"),
        Entry("rg.kthvalue({q}, 1, {axis})[0]", "f", "t"),
        Entry("rg.mode({q}, {axis})[0]", "n", "t"),
        Entry("rg.median({q})", "n", "n"), Entry("rg.linalg.trace({M})", "f"),
        Entry("rg.dist({x}, {S}, {int})", "f", "t"),
        Entry("rg.max({q}, axis={axis}) * rg.min({q}, axis={axis})", "f", "n"),
    ],
    "scans": [
        *each("cumulative_sum cumulative_prod", "rg.FN({v}, axis={axis})", "n", "n"),
        Entry("rg.cumulative_sum({v}, axis={axis}, include_initial={flag})", "n"),
        *each("cummax cummin", "rg.FN({q}, {axis})", "n", peers=""),
        Entry("rg.logcumsumexp({q}, {axis})", "f", "t"),
        Entry("rg.diff({v}, axis={axis})", "f", "n"),
        Entry("rg.diff({v}, n={n}, axis={axis})", "n", ""),
        Entry("rg.trapezoid({v}, axis={axis})", "f", "n"),
        Entry("rg.gradient({v}, axis={axis})", "f", "n"),
        Entry("rg.cumulative_trapezoid({v}, axis={axis})"),
        Entry("rg.unwrap({q}, axis={axis})", "f", "n"),
        *each("nancumsum nancumprod", "rg.FN({v}, axis={axis})", "f", "n"),
        Entry("rg.ediff1d({v})", "f", "n"),
    ],
    "movement": [
        Entry("rg.reshape({x}, {shape})", "a", "nt"), Entry("{x}.reshape({shape})", "a", "nt"),
        Entry("rg.permute_dims({x}, {order})", "a", torch="{x}.permute({order})",
              numpy="{x}.transpose({order})"),
        Entry("rg.expand_dims({x}, axis={newaxis})", "a", "n"),
        Entry("{x}.unsqueeze({newaxis})", "a", "t"),
        Entry("rg.squeeze({x})", "a", "nt"), Entry("rg.flip({x}, axis={axes})", "a", "n"),
        Entry("rg.roll({v}, {k}, axis={axis})", "a", "n"), Entry("rg.roll({x}, {k})", "a", "n"),
        Entry("rg.broadcast_to({x}, {to})", "a", "nt"), Entry("rg.tile({x}, {times})", "a", "nt"),
        Entry("rg.repeat({v}, {n0}, axis={axis})", "a", "n"),
        Entry("rg.pad({v}, {pads})", "n", "n"), Entry("rg.pad({v}, {pads}, value={num})", "f"),
        Entry("rg.pad({q}, {pads}, mode='edge')", "f", "n"),
        Entry("rg.pad({q}, {pads}, mode='wrap')", "f", "n"),
        Entry("F.pad({q}, ({k}, {k2}), value={num})", "f", "t"),
        *each("tril triu", "rg.FN({M}, {k})", "n"),
        Entry("rg.swapaxes({v}, {axis}, {axis2})", "a", "n"),
        Entry("rg.moveaxis({v}, {axis}, {axis2})", "a", "nt"), Entry("{M}.mT", "a", "nt"),
        Entry("rg.concat([{v}, {S}], axis={axis})", "a", "n"),
        Entry("rg.concat([{v}, {v}, {S}], axis={axis})", "a", "n"),
        Entry("rg.stack([{x}, {S}], axis={newaxis})", "a", "n"),
        Entry("rg.concat([{x}, {x}], axis=None)", "a", "n"),
        Entry("rg.split({q}, {q}.shape[{axis}], axis={axis})[-1]", "a", "n"),
        Entry("rg.chunk({q}, {n}, {axis})[0]", "a", "t"),
        Entry("rg.unbind({q}, {axis})[-1]", "a", "t"),
        Entry("rg.unstack({q}, axis={axis})[0]", "a"),
        Entry("rg.array_split({q}, {n}, axis={axis})[0]", "a", "n"),
        Entry("{x}.ravel()", "a", "nt"), Entry("rg.flatten({x})", "a", "t"),
        Entry("rg.diag({I}, {k})", "n", "n"), Entry("rg.diagonal({M}, {k})", "n"),
        Entry("rg.diagonal({M})", "f"), Entry("rg.diag_embed({v}, {k})", "f", "t"),
        Entry("rg.rot90({M}, {k})", "a", "n"), Entry("rg.atleast_2d({x})", "a", "nt"),
        *each("atleast_1d atleast_3d", "rg.FN({x})", "a", "nt"),
        Entry("rg.hstack([{v}, {S}])", "a", "nt"), Entry("rg.vstack([{v}, {S}])", "a", "nt"),
        Entry("rg.narrow({q}, {axis}, 0, 1)", "a", "t"),
        Entry("rg.meshgrid({I}, {I})[0]", "n", "n"),
        Entry("rg.block_diag({M}, {M})", "f", "t"), Entry("rg.flipud({v})", "a", "nt"),
        Entry("rg.resize({q}, {newshape})", "n", "n"), Entry("rg.append({x}, {x})", "n", "n"),
        Entry("{x}.expand({to})", "a", "t"), Entry("rg.kron({M}, {M})", "f", "nt"),
        Entry("{x}.T", "f", numpy="{x}.T"),
    ],
    "indexing": [
        *[Entry("{x}[{key}]", k, "n") for k in "ffna"],
        *[Entry("{x}[{slices}]", k, "n") for k in "fna"],
        Entry("rg.take({v}, {positions:n}, axis={axis})", "a", "n"),
        Entry("rg.take_along_axis({v}, {along}, axis={axis})", "a", "n"),
        Entry("rg.gather({v}, {axis}, {along})", "f"),
        Entry("rg.index_select({v}, {axis}, {positions:n})", "a", "t"),
        Entry("rg.masked_fill({x}, {mask}, {num})", "f", "t"),
        Entry("rg.scatter_add({v}, {positions:n}, {num})"),
        Entry("rg.scatter_max({v}, {positions:n}, {num})"),
        Entry("rg.scatter_mul({v}, {positions:n}, {num})"),
        Entry("rg.scatter_set({v}, {positions:n}, {num})"),
        Entry("rg.scatter({v}, {axis}, {along}, 0.5)", "f", "t"),
        Entry("rg.scatter_reduce({v}, {axis}, {along}, rg.ones_like({v}), 'amax')"),
        Entry("rg.index_add({v}, 0, {positions:n}, {v}[{positions:n}])", "f", "t"),
        Entry("rg.index_fill({v}, {axis}, {positions:n}, {num})", "f", "t"),
        Entry("rg.segment_sum({q}, rg.arange({q}.shape[0]) // 2, 3)", "n"),
        *[Entry(f"rg.segment_{n}({{q}}, {{ids}}, {{n}} + 3)", k)
          for n, k in (("sum", "n"), ("mean", "f"), ("max", "n"), ("min", "n"), ("prod", "f"),
                       ("softmax", "f"))],
        Entry("rg.segment_mean({q}, rg.arange({q}.shape[0]) % 3, 4)"),
        Entry("rg.segment_max({q}, rg.arange({q}.shape[0]) % 2, 2)"),
        Entry("rg.segment_prod({q}, rg.arange({q}.shape[0]) % 2, 2)"),
        Entry("rg.segment_softmax({q}, rg.arange({q}.shape[0]) % 2, 2)"),
        Entry("rg.select([{mask}], [{x}], {num})", "f", "n"),
        Entry("{x}[{mask}]", "a", "nt", traits="looks"),
        Entry("rg.nonzero({q})[0]", "n", "n", traits="looks"), Entry("rg.one_hot({x} % 3, 3)", "i"),
        Entry("rg.delete({q}, 0, {axis})", "a", "n"),
        Entry("rg.insert({q}, 0, {num}, {axis})", "f", "n"),
        Entry("rg.choose({x} % 2, [{s:f}, {s:f}])", "i", "n"),
        Entry("rg.interp({x}, [0.0, 0.4, 1.0], [1.0, 3.0, 2.0])", "f", "n"),
        Entry("rg.select_scatter({q}, {q}[0] * 2, 0, 0)", "f", "t"),
        Entry("rg.slice_scatter({q}, {q}[:1] * 2, 0, 0, 1)", "f", "t"),
        Entry("rg.put_along_axis({v}, {along}, {num}, axis={axis})", "f"),
        Entry("rg.masked_scatter({x}, {mask}, {S})", "f", "t"),
    ],
    "sorting": [
        Entry("rg.sort({v}, axis={axis})", "n", "n"),
        Entry("rg.sort({v}, axis={axis}, descending={flag})", "n"),
        Entry("rg.sort(rg.round({v}), axis={axis})", "f", "n"),
        Entry("rg.argsort(rg.round({v}), axis={axis}, stable=True)", "f", "n"),
        Entry("rg.topk(rg.round({q}), {q}.shape[{axis}], {axis})[0]", "f"),
        Entry("rg.max(rg.round({q}), axis={axis}) - rg.min(rg.sign({q}), axis={axis})", "f"),
        Entry("rg.argsort({v}, axis={axis}, stable=True)", "n", "n"),
        Entry("rg.argsort({v}, axis={axis}, descending=True)", "n"),
        Entry("rg.topk({q}, 1, {axis})[{flag} + 0]", "f", "t"), Entry("rg.msort({v})", "f", "t"),
        Entry("rg.searchsorted(rg.sort({I}), {x})", "f", "n"),
        Entry("rg.searchsorted(rg.sort({I}), {x:i}, side='right')", "i", "n"),
        Entry("rg.isin({x}, {x})", "i", "n"),
        Entry("rg.unique_values({x})", "n", numpy="np.unique({x})", traits="looks"),
        Entry("rg.bincount(abs({I}) % 5, length=6)", "i"),
        Entry("rg.digitize({x}, [-0.5, 0.0, 0.5])", "f", "n"),
        Entry("rg.lexsort([{v}, {v}])", "n", "n"),
        Entry("rg.partition({q}, 0, axis={axis})[..., :1]", "f"),
        Entry("rg.histogram({x}, 3)[0]", "f", "n"),
    ],
    "products": [
        *[Entry("{M} @ {mm}", k, "nt") for k in "ffm"], Entry("rg.matmul({M}, {M}.mT)", "f", "nt"),
        Entry("{M}.mT @ {M}", "m", "nt"), Entry("rg.outer({I}, {I})", "f", "nt"),
        Entry("rg.vecdot({v}, {S})", "f", numpy="np.vecdot({v}, {S})"),
        Entry("rg.tensordot({v}, {S}, axes={x}.ndim)".replace("{x}", "{v}"), "f", "n"),
        Entry("rg.einsum('...i,...i->...', {v}, {S})", "f", "nt"),
        Entry("rg.einsum('...ij->...ji', {M})", "n", "nt"),
        Entry("rg.einsum('...ii->...i', {Q})", "f", "nt"),
        Entry("rg.einsum('...ij,...kj->...ik', {M}, {S})", "f", "nt"),
        Entry("rg.inner({I}, {S})", "f", "nt"), Entry("rg.dot({I}, {S})", "f", "nt"),
        Entry("rg.convolve({I}, {I})", "f", "n"), Entry("rg.cov({M})", "f", ""),
        Entry("F.linear({v}, rg.ones((2, {v}.shape[-1]), dtype={v}.dtype) * 0.3)", "f"),
        Entry("rg.vdot({I}, {S})", "z", "n"), Entry("rg.polyval({I}, {x})", "f", "n"),
        Entry("rg.cross({v}, {S}, axis={axis})", "f", "n"),
        Entry("F.scaled_dot_product_attention({M}, {S}, {S})", "f", "t"),
        Entry("F.scaled_dot_product_attention({M}, {S}, {S}, is_causal=True)", "f", "t"),
        Entry("F.cdist({M}, {S})", "f"), Entry("rg.vander({I}, {n})", "f", "n"),
    ],
    "windows": [
        Entry("F.conv1d({c1}, {w1}, stride={n}, padding={n0})", "f", "t"),
        Entry("F.conv1d({c1}, {w1}, dilation={n}, padding={n2})", "f", "t"),
        Entry("F.conv2d({c2}, {w2}, stride={n}, padding={n0})", "f", "t"),
        Entry("F.conv_transpose1d({c1}, {t1}, stride={n}, padding=0)", "f", "t"),
        *[Entry(f"F.{p}_pool1d({{c1}}, {{n}}, stride={{n2}})", "f", "t") for p in ("max", "avg")],
        *[Entry(f"F.{p}_pool2d({{c2}}, {{n}})", "f", "t")
          for p in ("max", "avg", "adaptive_avg", "adaptive_max")],
        Entry("F.interpolate({c2}, scale_factor=2)", "f", "t"),
        Entry("F.interpolate({c2}, scale_factor=2, mode='bilinear')", "f", "t"),
        Entry("F.unfold({c2}, 2)", "f", "t"),
        Entry("F.group_norm({c2}, 1)", "f", "t"),
        Entry("F.instance_norm({c2})", "f", "t"),
        Entry("F.pad({c2}, (1, 1, 0, 1), mode='replicate')", "f", "t"),
    ],
    "losses": [
        *[Entry(f"F.{n}({{x}}, {{S}}, reduction='{red}')", "f", "t")
          for n in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss")
          for red in ("mean", "sum", "none")],
        Entry("F.binary_cross_entropy_with_logits({x}, rg.sigmoid({S}))", "f", "t"),
        Entry("F.cosine_similarity({v}, {S}, dim={axis})", "f", "t"),
        Entry("F.cross_entropy({rows}, {labels})", "f", "t"),
        Entry("F.cross_entropy({rows}, {labels}, label_smoothing=0.1, reduction='sum')", "f", "t"),
        Entry("F.nll_loss(rg.log_softmax({rows}, axis=1), {labels})",
              torch="torch.nn.functional.nll_loss(torch.log_softmax({rows}, 1), {labels})"),
        Entry("F.multi_margin_loss({rows}, {labels})", "f", "t"),
        Entry("F.embedding({labels}, {rows})", "f", "t"),
    ],
    "matrices": [
        *[Entry(f"rg.linalg.{n}({{Q}})", k, "nt") for n in ("inv", "det", "pinv") for k in "fz"],
        *[Entry(f"rg.linalg.{n}({{Q}} @ {{Q}}.mT)", "f", "nt") for n in ("cholesky", "eigvalsh")],
        Entry("rg.linalg.slogdet({Q})[1]", "z", "nt"), Entry("rg.linalg.svdvals({Q})", "z", "nt"),
        Entry("rg.linalg.solve({Q}, {Q} * 2)", "z", "nt"),
        Entry("rg.linalg.matrix_power({Q}, {k})", "f", "nt"),
        Entry("rg.linalg.matrix_exp({Q} * 0.2)", "z", "t"),
        Entry("abs(rg.linalg.qr({Q})[1])", "f", "nt"),
        Entry("rg.linalg.matrix_norm({Q})", "f", "nt"),
        Entry("rg.linalg.matrix_norm({Q}, ord='nuc')", "f", "nt"),
        Entry("rg.linalg.cond({Q})", "f", "nt"),
        Entry("rg.linalg.solve_triangular(rg.tril({Q}), {Q}, lower=True)", "f"),
        Entry("rg.linalg.multi_dot([{Q}, {Q}, {Q}])", "f", ""),
        Entry("rg.linalg.lstsq({Q}, {Q})[0]", "f"), Entry("rg.linalg.lu({Q})[2]", "f"),
        Entry("rg.linalg.eigh({Q} + {Q}.mT)[0]", "f", "nt"),
        Entry("rg.linalg.sqrtmh({Q} @ {Q}.mT)", "f"),
    ],
    "fourier": [
        *[Entry(f"rg.fft.{n}({{q}}, axis={{axis}})", k, "nt")
          for n in ("fft", "ifft", "hfft") for k in "fz"],
        *[Entry(f"rg.fft.{n}({{q}}, axis={{axis}})", "f", "nt") for n in ("rfft", "ihfft")],
        Entry("rg.fft.irfft({q}, n={int} + 1, axis={axis})", "z", "nt"),
        Entry("rg.fft.fft({q}, n={n}, axis={axis}, norm='ortho')", "z", "nt"),
        Entry("rg.fft.fftn({q})", "z", "nt"), Entry("rg.fft.fftshift({v})", "z", "nt"),
        Entry("rg.fft.rfftn({q})", "f", "nt"),
    ],
    "leaves": [
        Entry("rg.zeros({newshape}, dtype={dtype})", "a"),
        Entry("rg.ones({newshape}, dtype={dtype})", "a"),
        Entry("rg.full({newshape}, {num}, dtype={fdtype})", "a"),
        Entry("rg.arange({int}, dtype={dtype})", "a"),
        Entry("rg.linspace(0.0, {num}, {int}, dtype={fdtype})", "a"),
        Entry("rg.eye({int}, {n}, k={k}, dtype={fdtype})", "a"),
        Entry("rg.zeros_like({x})", "a", "n"),
        Entry("rg.ones_like({x})", "a", "n"),
        Entry("rg.full_like({x}, 2)", "m", "n"),
        *[Entry(f"rg.random.Generator({{seed}}).{n}({{newshape}}, dtype={{fdtype}})", "f")
          for n in ("normal", "uniform")],
        Entry("rg.random.Generator({seed}).randint(0, 9, {newshape})", "a"),
        Entry("rg.random.Generator({seed}).permutation({int})", "a"),
        Entry("rg.random.Generator({seed}).bernoulli(0.5, {newshape})", "a"),
        Entry("F.dropout({x}, 0.5, True, generator=rg.random.Generator({seed}))", "f"),
        Entry("rg.tri({n}, {n2}, {k})", "a"), Entry("rg.asarray({num})", "f"),
    ],
}  # fmt: skip
