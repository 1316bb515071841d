"""Calls of the functions that stand under NumPy's names, and of SciPy's special functions of
several arguments."""

from __future__ import annotations

from functools import partial

import retrograd as rg
from benchmarks.calls.arrays import Arrays, Call

ONE = """
atleast_1d atleast_2d atleast_3d deg2rad degrees fabs fliplr flipud flatnonzero frexp gradient
iscomplex isneginf isposinf isreal modf nan_to_num nancumprod nancumsum nanmax nanmean nanmedian
nanmin nanargmax nanargmin nanprod nanstd nansum nanvar ptp rad2deg radians ravel rot90 sinc spacing
sort_complex trapezoid trim_zeros unique unwrap average cov corrcoef ediff1d real_if_close
tril_indices_from triu_indices_from
"""
TWO = """
append divmod float_power fmax fmin fmod heaviside logaddexp2 allclose isclose array_equal
array_equiv union1d setdiff1d setxor1d
"""


def numpy_functions(a: Arrays) -> dict[str, Call]:
    x, y, i, n, row = a.x, a.y, a.i, a.n, a.row
    made: dict[str, Call] = {name: partial(getattr(rg, name), x) for name in ONE.split()}
    made |= {name: partial(getattr(rg, name), x, y) for name in TWO.split()}
    return made | {
        "apply_along_axis": lambda: rg.apply_along_axis(rg.sum, 0, x),
        "apply_over_axes": lambda: rg.apply_over_axes(rg.sum, x, (0, 1)),
        "argpartition": lambda: rg.argpartition(x, 1),
        "array_split": lambda: rg.array_split(x, 2),
        "bitwise_count": lambda: rg.bitwise_count(i),
        "block": lambda: rg.block([[x, y], [y, x]]),
        "choose": lambda: rg.choose(i % 2, [x, y]),
        "column_stack": lambda: rg.column_stack([row, row]),
        "compress": lambda: rg.compress([True, False, True], x, 1),
        "convolve": lambda: rg.convolve(row, row),
        "correlate": lambda: rg.correlate(row, row, "same"),
        "delete": lambda: rg.delete(x, 1, 0),
        "diag_indices": lambda: rg.diag_indices(3),
        "diag_indices_from": lambda: rg.diag_indices_from(a.m),
        "diagflat": lambda: rg.diagflat(row),
        "dsplit": lambda: rg.dsplit(a.sequence, 2),
        "dstack": lambda: rg.dstack([x, y]),
        "extract": lambda: rg.extract(a.mask, x),
        "gcd": lambda: rg.gcd(i, i + 6),
        "geomspace": lambda: rg.geomspace(row[0], 3.0, 4),
        "histogram2d": lambda: rg.histogram2d(row, row, 3)[0],
        "histogram_bin_edges": lambda: rg.histogram_bin_edges(x, 3),
        "histogramdd": lambda: rg.histogramdd([row, row], 3)[0],
        "hsplit": lambda: rg.hsplit(x, [1]),
        "hstack": lambda: rg.hstack([x, y]),
        "indices": lambda: rg.indices((2, 3)),
        "insert": lambda: rg.insert(x, 1, 0.5, 0),
        "intersect1d": lambda: rg.intersect1d(x, rg.concat([x, y])),
        "interp": lambda: rg.interp(x, [0.0, 0.4, 1.0], [1.0, 3.0, 2.0]),
        "iscomplexobj": lambda: rg.iscomplexobj(x),
        "isrealobj": lambda: rg.isrealobj(x),
        "ix_": lambda: rg.ix_(a.rows, a.rows),
        "lcm": lambda: rg.lcm(i, i + 6),
        "ldexp": lambda: rg.ldexp(x, i),
        "lexsort": lambda: rg.lexsort([x, y]),
        "logspace": lambda: rg.logspace(row[0], 1.0, 4),
        "nanpercentile": lambda: rg.nanpercentile(x, 30.0),
        "nanquantile": lambda: rg.nanquantile(x, 0.3),
        "partition": lambda: rg.partition(x, 1),
        "piecewise": lambda: rg.piecewise(x, [a.mask], [rg.sqrt, 2.0]),
        "poly": lambda: rg.poly(x[0, :3]),
        "polyadd": lambda: rg.polyadd(row, row),
        "polyder": lambda: rg.polyder(row),
        "polydiv": lambda: rg.polydiv(x[0, :4], y[0, :2]),
        "polyfit": lambda: rg.polyfit(row, row, 1),
        "polyint": lambda: rg.polyint(row),
        "polymul": lambda: rg.polymul(row, row),
        "polysub": lambda: rg.polysub(row, row),
        "polyval": lambda: rg.polyval(x[0, :3], y),
        "ravel_multi_index": lambda: rg.ravel_multi_index([i, i], (n, n)),
        "resize": lambda: rg.resize(row, (2, 3)),
        "rollaxis": lambda: rg.rollaxis(a.image, 2),
        "roots": lambda: rg.roots(x[0, :3]),
        "select": lambda: rg.select([a.mask], [x], 0.5),
        "tri": lambda: rg.tri(n, n + 2),
        "tril_indices": lambda: rg.tril_indices(3),
        "triu_indices": lambda: rg.triu_indices(3),
        "unravel_index": lambda: rg.unravel_index(i, (n, n)),
        "vander": lambda: rg.vander(row, 3),
        "vsplit": lambda: rg.vsplit(x, [1]),
        "vstack": lambda: rg.vstack([x, y]),
    }


SPECIAL_ONE = """
cosdg cosm1 cotdg ellipe ellipk ellipkm1 exp1 exp10 expi exprel loggamma rgamma sindg spence tandg
zetac
"""
SPECIAL_TWO = """
binom boxcox boxcox1p chdtr chdtrc chdtri gammaincinv gammainccinv huber inv_boxcox inv_boxcox1p
poch pseudo_huber stdtr stdtrit
"""
SPECIAL_THREE = "betaincinv betainccinv fdtr fdtrc fdtri gdtr gdtrc hyp1f1 radian"


def special_functions(a: Arrays) -> dict[str, Call]:
    sp, x, y = rg.special, a.x, a.y
    made: dict[str, Call] = {name: partial(getattr(sp, name), x) for name in SPECIAL_ONE.split()}
    made |= {name: partial(getattr(sp, name), x, y) for name in SPECIAL_TWO.split()}
    made |= {name: partial(getattr(sp, name), x, y, y) for name in SPECIAL_THREE.split()}
    for name in ("bdtr", "bdtrc", "bdtri"):
        made[name] = partial(getattr(sp, name), 2.0, 5.0, x)
    for name in ("nbdtr", "nbdtrc", "nbdtri"):
        made[name] = partial(getattr(sp, name), 2.0, y, x)
    for name in ("pdtr", "pdtrc", "pdtri"):
        made[name] = partial(getattr(sp, name), 2.0, x)
    return made | {
        "expn": lambda: sp.expn(2.0, x),
        "hyp2f1": lambda: sp.hyp2f1(x, y, 1.5, 0.4 * y),
        "lpmv": lambda: sp.lpmv(1.0, 2.0, x),
        "yn": lambda: sp.yn(2.0, x),
    }
