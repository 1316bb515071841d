"""Calls of the functions that stand under PyTorch's names."""

from __future__ import annotations

from functools import partial

import numpy as np

import retrograd as rg
from benchmarks.calls.arrays import Arrays, Call

ONE = """
absolute amax amin aminmax arccos arcsin arcsinh arctan clone detach diag_embed digamma erfinv fix
flatten frac i0 kthvalue lgamma logit mode msort neg norm sgn std_mean t unbind var_mean
cumulative_trapezoid
"""
TWO = """
arctan2 dist div eq ge gt igamma igammac le lt mul ne polar rsub sub true_divide xlogy
cartesian_prod
"""
SQUARE = "adjoint det inverse logdet matrix_exp pinverse slogdet"
RANDOM_LIKE = "rand_like randn_like bernoulli poisson"


def pytorch_functions(a: Arrays) -> dict[str, Call]:
    """By name; a torch user knows what each takes."""
    x, y, m, row = a.x, a.y, a.m, a.row
    made: dict[str, Call] = {name: partial(getattr(rg, name), x) for name in ONE.split()}
    made |= {name: partial(getattr(rg, name), x, y) for name in TWO.split()}
    made |= {name: partial(getattr(rg, name), m) for name in SQUARE.split()}
    made["kthvalue"] = lambda: rg.kthvalue(x, 1)
    made["cartesian_prod"] = lambda: rg.cartesian_prod(row, row)
    return made | _products(a) | _shapes(a) | _indexed(a) | _random(a) | {
        "addcdiv": lambda: rg.addcdiv(x, y, y),
        "addcmul": lambda: rg.addcmul(x, y, y),
        "arccosh": lambda: rg.arccosh(x + 1.5),
        "arctanh": lambda: rg.arctanh(x),
        "bitwise_not": lambda: rg.bitwise_not(a.i),
        "bucketize": lambda: rg.bucketize(x, rg.sort(row)),
        "clamp": lambda: rg.clamp(x, 0.3, 0.6),
        "clamp_max": lambda: rg.clamp_max(x, 0.6),
        "clamp_min": lambda: rg.clamp_min(x, 0.3),
        "lerp": lambda: rg.lerp(x, y, 0.3),
        "mvlgamma": lambda: rg.mvlgamma(x + 3, 2),
        "polygamma": lambda: rg.polygamma(2, x),
        "renorm": lambda: rg.renorm(x, 2, 0, 0.5),
        "threshold": lambda: rg.threshold(x, 0.5, 0.0),
        "view_as_complex": lambda: rg.view_as_complex(rg.stack([x, y], axis=-1)),
        "view_as_real": lambda: rg.view_as_real(a.z),
    }  # fmt: skip


def _products(a: Arrays) -> dict[str, Call]:
    x, y, m, row = a.x, a.y, a.m, a.row
    both = rg.stack([x, y])
    other = rg.matrix_transpose(both)
    return {
        "addbmm": lambda: rg.addbmm(m, both, other),
        "addmm": lambda: rg.addmm(x, m, y),
        "addmv": lambda: rg.addmv(row, x.T, m[0]),
        "addr": lambda: rg.addr(x, m[0], row),
        "baddbmm": lambda: rg.baddbmm(m, both, other),
        "block_diag": lambda: rg.block_diag(m, x),
        "bmm": lambda: rg.bmm(both, other),
        "chain_matmul": lambda: rg.chain_matmul(m, m, x),
        "cholesky": lambda: rg.cholesky(a.spd),
        "cholesky_inverse": lambda: rg.cholesky_inverse(a.spd),
        "cholesky_solve": lambda: rg.cholesky_solve(x, a.spd),
        "dot": lambda: rg.dot(row, row),
        "ger": lambda: rg.ger(row, row),
        "inner": lambda: rg.inner(x, y),
        "matrix_power": lambda: rg.matrix_power(m, 3),
        "mm": lambda: rg.mm(m, x),
        "mv": lambda: rg.mv(x, row),
        "vdot": lambda: rg.vdot(row, row),
    }


def _shapes(a: Arrays) -> dict[str, Call]:
    x, y, n = a.x, a.y, a.n
    return {
        "as_tensor": lambda: rg.as_tensor(np.ones(n)) + 1,
        "broadcast_tensors": lambda: rg.broadcast_tensors(x, a.row),
        "cat": lambda: rg.cat([x, y]),
        "chunk": lambda: rg.chunk(x, 2),
        "combinations": lambda: rg.combinations(x[0, :4]),
        "concatenate": lambda: rg.concatenate([x, y]),
        "from_numpy": lambda: rg.from_numpy(np.ones(n)) + 1,
        "movedim": lambda: rg.movedim(a.image, 1, 2),
        "narrow": lambda: rg.narrow(x, 1, 1, n),
        "permute": lambda: rg.permute(a.image, (0, 2, 3, 1)),
        "scalar_tensor": lambda: rg.scalar_tensor(2.0) + 1,
        "split_with_sizes": lambda: rg.split_with_sizes(x, [1, n + 1], 1),
        "swapdims": lambda: rg.swapdims(x, 0, 1),
        "tensor_split": lambda: rg.tensor_split(x, [1, 2]),
        "transpose": lambda: rg.transpose(x),
        "unflatten": lambda: rg.unflatten(a.image, 2, (2, n)),
        "unsqueeze": lambda: rg.unsqueeze(x, 1),
    }


def _indexed(a: Arrays) -> dict[str, Call]:
    x, y, i, rows, mask = a.x, a.y, a.i, a.rows, a.mask
    more = rg.concat([x, y[:1]])
    return {
        "diagonal_scatter": lambda: rg.diagonal_scatter(a.m, a.m[0]),
        "gather": lambda: rg.gather(x, 1, i),
        "index_add": lambda: rg.index_add(x, 0, rows, more),
        "index_copy": lambda: rg.index_copy(x, 0, rows, more),
        "index_fill": lambda: rg.index_fill(x, 0, rows, 0.5),
        "index_put": lambda: rg.index_put(x, (rows,), more, accumulate=True),
        "index_reduce": lambda: rg.index_reduce(x, 0, rows, more, "amax"),
        "index_select": lambda: rg.index_select(x, 0, rows),
        "masked_fill": lambda: rg.masked_fill(x, mask, 0.5),
        "masked_scatter": lambda: rg.masked_scatter(x, mask, y),
        "masked_select": lambda: rg.masked_select(x, mask),
        "put": lambda: rg.put(x, rows, a.row[: a.n + 1]),
        "repeat_interleave": lambda: rg.repeat_interleave(x, 2, 0),
        "scatter": lambda: rg.scatter(x, 1, i, y),
        "scatter_reduce": lambda: rg.scatter_reduce(x, 1, i, y, "amax"),
        "select_scatter": lambda: rg.select_scatter(x, a.row, 0, 1),
        "slice_scatter": lambda: rg.slice_scatter(x, y[:1], 0, 1, 2),
        "take_along_dim": lambda: rg.take_along_dim(x, i, 1),
    }


def _random(a: Arrays) -> dict[str, Call]:
    """All from one generator."""
    x, y, n, g = a.x, a.y, a.n, rg.random.Generator(5)
    made: dict[str, Call] = {
        name: partial(getattr(rg, name), x, generator=g) for name in RANDOM_LIKE.split()
    }
    return made | {
        "multinomial": lambda: rg.multinomial(x, 3, True, generator=g),
        "normal": lambda: rg.normal(x, y, generator=g),
        "rand": lambda: rg.rand(n, 2, generator=g),
        "randint": lambda: rg.randint(0, 9, (n, 2), generator=g),
        "randint_like": lambda: rg.randint_like(x, 9, generator=g),
        "randn": lambda: rg.randn(n, 2, generator=g),
        "randperm": lambda: rg.randperm(n, generator=g),
    }
