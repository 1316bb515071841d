"""What of retrograd answers to each entry of PyTorch's OpInfo database.

A counterpart takes the arguments of PyTorch's function, with arrays in place of tensors. Names that
both libraries have, with the same arguments, are found by `counterpart`; `WRITTEN` spells out those
that are called otherwise here, in retrograd's own functions only, so that nothing but retrograd is
tested. What has none is in `differences.py`.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import retrograd as rg
from retrograd.nn import functional as F

Function = Callable[..., Any]


def counterpart(name: str, variant: str) -> Function | None:
    """The function for an entry of that name and variant."""
    for key in (f"{name} {variant}", name):
        if key in WRITTEN:
            return WRITTEN[key]
    space, _, last = name.rpartition(".")
    home = {"nn.functional": F, "linalg": rg.linalg, "fft": rg.fft, "special": rg.special, "": rg}
    found = getattr(home.get(space), last, None)
    if not callable(found) and not space:
        found = getattr(rg.Tensor, last, None)
    return with_own_names(found) if inspect.isfunction(found) or callable(found) else None


def with_own_names(f: Function) -> Function:
    """`f` with PyTorch's names of options, where its own are the standard's."""
    known = inspect.signature(f).parameters
    names = {"dim": "axis", "keepdim": "keepdims", "interpolation": "method"}

    def called(*args: Any, **options: Any) -> Any:
        own = {k if k in known else names.get(k, k): v for k, v in options.items()}
        return f(*args, **own)

    return called


def along(f: Function, *, empty_is_all: bool = False) -> Function:
    """A reduction that takes an axis or several, by position or as `dim`."""

    def called(x: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
        dim = None if empty_is_all and dim in ((), []) else axes(dim)
        return f(x, axis=dim, keepdims=keepdim, **options)

    return called


def axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list) else dim


def spread(f: Function) -> Function:
    """PyTorch's statistics divide by n - 1, or by n where they are told not to be unbiased."""

    def called(
        x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: Any = ...
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        by = (
            (1 if unbiased else 0) if correction is ... else 1 if correction is None else correction
        )
        dim = None if dim == () or dim == [] else axes(dim)
        return f(x, axis=dim, correction=by, keepdims=keepdim)

    return called


def sized(*size: Any) -> tuple[int, ...]:
    """Sizes given one by one, or as one sequence."""
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def scaled(f: Function) -> Function:
    return lambda x, y, *, alpha=1: f(x, alpha * y if alpha != 1 else y)


def power_of_norm(x: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    if p == "nuc" or (p == "fro" and dim is not None and len(sized(dim)) == 2):
        dim = (-2, -1) if dim is None else axes(dim)
        return rg.linalg.norm(x, ord=p, axis=dim, keepdims=keepdim)
    p = 2 if p in ("fro", None) else p
    return rg.vector_norm(x, ord=p, axis=axes(dim), keepdims=keepdim)


def pieces(x: Any, at: Any, dim: int = 0) -> Any:
    """Pieces of one size, the last one of what is left, or of the sizes listed."""
    if isinstance(at, int):
        n = x.shape[dim]
        at = [min(at, n - i) for i in range(0, n, at)]
    return rg.split(x, list(at), axis=dim)


def chunks(x: Any, count: int, dim: int = 0) -> Any:
    return pieces(x, max(1, -(-x.shape[dim] // count)), dim)


def tensor_split(x: Any, at: Any, dim: int = 0) -> Any:
    """Cut into so many pieces, or at these positions, which may lie beyond the end."""
    at = at if isinstance(at, (int, tuple, list)) else at.tolist()
    n = x.shape[dim]
    if isinstance(at, int):
        size, more = divmod(n, at)
        at = [i * size + min(i, more) for i in range(1, at)]
    ends = [0, *at, n]
    return [sliced(x, dim, a, b) for a, b in itertools.pairwise(ends)]


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    if x.ndim == 0:
        return index_fill(x[None], 0, index, value)[0]
    moved = rg.moveaxis(x, dim, 0)
    return rg.moveaxis(moved.at[rg.reshape(index, (-1,))].set(value), 0, dim)


def updated(kind: str) -> Function:
    def called(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
        if x.ndim == 0:
            y = called(x[None], 0, rg.reshape(index, (-1,)), rg.reshape(source, (-1,)), alpha=alpha)
            return y[0]
        index = rg.reshape(index, (-1,))
        source = rg.reshape(source, (*source.shape, 1)) if source.ndim == 0 else source
        moved = rg.moveaxis(x, dim, 0)
        values = rg.moveaxis(source, dim, 0)
        values = alpha * values if alpha != 1 else values
        return rg.moveaxis(getattr(moved.at[index], kind)(values), 0, dim)

    return called


def put_along(mode: str) -> Function:
    """`scatter`: index and values may be smaller than what is updated."""

    def called(x: Any, dim: int, index: Any, source: Any) -> Any:
        if x.ndim == 0:
            flat = called(x[None], 0, rg.reshape(index, (-1,)), _flat(source))
            return flat[0]
        if index.ndim == 0:
            return called(x, dim, rg.reshape(index, (1,)), _flat(source))
        if 0 in index.shape:
            return x
        source = source[tuple(slice(n) for n in index.shape)] if _ranked(source) else source
        places = [
            rg.reshape(rg.arange(n), tuple(n if b == a else 1 for b in range(x.ndim)))
            for a, n in enumerate(index.shape)
        ]
        places[dim] = index
        return getattr(x.at[tuple(places)], mode)(source)

    return called


def _ranked(x: Any) -> bool:
    return getattr(x, "ndim", 0) > 0


def _flat(x: Any) -> Any:
    return rg.reshape(x, (-1,)) if hasattr(x, "ndim") else x


def scatter(x: Any, dim: int, index: Any, source: Any, *, reduce: str | None = None) -> Any:
    return put_along({None: "set", "add": "add", "multiply": "multiply"}[reduce])(
        x, dim, index, source
    )


def narrowed(x: Any, dim: int, start: Any, length: int) -> Any:
    start = int(start)
    start += x.shape[dim] if start < 0 else 0
    return sliced(x, dim, start, start + length)


def sliced(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[(*(slice(None),) * (dim % x.ndim), slice(start, end, step))]


def selected(x: Any, dim: int, index: int) -> Any:
    return x[(*(slice(None),) * (dim % x.ndim), index)]


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return rg.diagonal(rg.moveaxis(x, (dim1, dim2), (-2, -1)), offset=offset)


def linalg_diagonal(x: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return diagonal(x, offset, dim1, dim2)


def at_least(rank: int) -> Function:
    def each(x: Any) -> Any:
        if rank == 3 and x.ndim == 2:
            return x[:, :, None]
        if rank == 3 and x.ndim == 1:
            return x[None, :, None]
        return rg.reshape(x, (1,) * (rank - x.ndim) + tuple(x.shape)) if x.ndim < rank else x

    def called(*xs: Any) -> Any:
        if len(xs) == 1 and isinstance(xs[0], (tuple, list)):
            xs = tuple(xs[0])
        found = tuple(each(x) for x in xs)
        return found[0] if len(found) == 1 else found

    return called


def stacked(rank: int, axis: int) -> Function:
    def called(xs: Any) -> Any:
        one = at_least(rank)
        xs = [one(x) for x in xs]
        return rg.concat(xs, axis=0 if axis == 1 and xs[0].ndim == 1 else axis)

    return called


def columns(xs: Any) -> Any:
    return rg.concat([rg.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in xs], axis=1)


def trapezoid(y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    return rg.sum(_trapezoids(y, x, dx, dim), axis=dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    return rg.cumsum(_trapezoids(y, x, dx, dim), axis=dim)


def _trapezoids(y: Any, x: Any, dx: float, dim: int) -> Any:
    high, low = sliced(y, dim, 1), sliced(y, dim, 0, -1)
    if x is None:
        return (high + low) * dx / 2
    if x.ndim == 1:
        x = rg.reshape(x, tuple(-1 if a == dim % y.ndim else 1 for a in range(y.ndim)))
    widths = rg.diff(x, axis=dim)
    return (high + low) * widths / 2


def rotated(x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    a, b = dims
    turned = {
        0: lambda: x,
        1: lambda: rg.flip(rg.swapaxes(x, a, b), axis=a),
        2: lambda: rg.flip(rg.flip(x, axis=a), axis=b),
        3: lambda: rg.flip(rg.swapaxes(x, a, b), axis=b),
    }
    return turned[k % 4]()


def covariance(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    x = at_least(2)(x)
    weights = None
    for w in (fweights, aweights):
        weights = w if weights is None else weights if w is None else weights * w
    if weights is None:
        total, center = x.shape[1], rg.mean(x, axis=1, keepdims=True)
        down = total - correction
        wide = x - center
        scaled_ = wide
    else:
        total = rg.sum(weights)
        center = rg.sum(x * weights, axis=1, keepdims=True) / total
        if aweights is None:
            down = total - correction
        else:
            down = total - correction * rg.sum(weights * aweights) / total
        wide = x - center
        scaled_ = wide * weights
    return rg.squeeze(rg.matmul(scaled_, rg.conj(rg.matrix_transpose(wide))) / down) + 0


def unfolded(x: Any, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return rg.reshape(x, (1,))[:size]
    starts = range(0, x.shape[dim] - size + 1, step)
    index = [[s + k for k in range(size)] for s in starts]
    moved = rg.moveaxis(x, dim, 0)
    taken = rg.take(moved, rg.asarray(index), axis=0)
    return rg.moveaxis(rg.moveaxis(taken, 1, -1), 0, dim % x.ndim)


def distance(x: Any, y: Any, p: Any = 2) -> Any:
    return rg.vector_norm(x - y, ord=p)


def repeated(x: Any, *sizes: Any) -> Any:
    sizes = sized(*sizes)
    x = rg.reshape(x, (1,) * (len(sizes) - x.ndim) + tuple(x.shape))
    return rg.tile(x, sizes)


def expanded(x: Any, *size: Any) -> Any:
    size = sized(*size)
    extra = len(size) - x.ndim
    return rg.broadcast_to(
        x, tuple(x.shape[i - extra] if n == -1 else n for i, n in enumerate(size))
    )


def rooted(x: Any, upper: bool = False) -> Any:
    return rg.linalg.cholesky(x, upper=upper)


def solve_triangular(
    a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    if left:
        return rg.linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unitriangular)
    t = rg.linalg.matrix_transpose
    return t(rg.linalg.solve_triangular(t(a), t(b), lower=upper, unit_diagonal=unitriangular))


def extremum(f: Function) -> Function:
    """`torch.max`: of all, along an axis (then with positions, which are left out), or of two."""

    def called(x: Any, other: Any = None, keepdim: bool = False, *, dim: Any = None) -> Any:
        axis = other if dim is None else dim
        if axis is None:
            return f(x)
        return (
            rg.squeeze(f(x[None], axis=1), axis=0)
            if x.ndim == 0
            else f(x, axis=axis, keepdims=keepdim)
        )

    return called


def softened(f: Function) -> Function:
    def called(x: Any, dim: int, dtype: Any = None) -> Any:
        x = x if dtype is None else rg.astype(x, dtype)
        return f(x[None], axis=0)[0] if x.ndim == 0 else f(x, axis=dim)

    return called


def scanned(f: Function) -> Function:
    def called(x: Any, dim: int, *, dtype: Any = None) -> Any:
        x = x if dtype is None else rg.astype(x, dtype)
        return f(x[None], axis=0)[0] if x.ndim == 0 else f(x, axis=dim)

    return called


def top(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if x.ndim == 0:
        return x[None][:k][0] if k else x[None][:0]
    return rg.topk(x, k, axis=dim, largest=largest)[0]


def smallest(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return x
    found = selected(rg.sort(x, axis=dim), dim, k - 1)
    return rg.expand_dims(found, axis=dim % x.ndim) if keepdim else found


def quantile(
    x: Any, q: Any, *, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Any:
    return rg.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def einsum(operands: Any, *rest: Any) -> Any:
    if isinstance(operands, str):
        parts = rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest
        return rg.einsum(operands, *parts)
    return rg.einsum(rest[0], *operands)


def adaptive_max(f: Function) -> Function:
    return lambda x, size, *_: f(x, size)


def triangle(f: Function) -> Function:
    return lambda x, diagonal=0: f(x, k=diagonal)


def hermitian(x: Any) -> Any:
    return rg.conj(rg.permute_dims(x, tuple(reversed(range(x.ndim)))))


def squeezed(x: Any, dim: Any) -> Any:
    if x.ndim == 0:
        return x
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return rg.squeeze(x, axis=tuple(d for d in dims if x.shape[d] == 1))


def one_triangle(x: Any, uplo: str) -> Any:
    """The Hermitian matrix of which PyTorch reads one triangle."""
    t = rg.tril(x, k=-1) if uplo == "L" else rg.triu(x, k=1)
    d = rg.real(rg.diagonal(x))
    eye = rg.eye(x.shape[-1], dtype=d.dtype)
    return t + rg.conj(rg.matrix_transpose(t)) + d[..., None, :] * eye


def sampled(x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
    return F.grid_sample(
        x, grid, mode=("bilinear", "nearest", "bicubic")[mode],
        padding_mode=("zeros", "border", "reflection")[padding], align_corners=corners,
    )  # fmt: skip


def triangular_solve(
    b: Any, a: Any, *, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    return rg.linalg.solve_triangular(
        a, b, lower=not upper, trans=1 if transpose else 0, unit_diagonal=unitriangular
    )


def rounded(x: Any, *, decimals: int = 0) -> Any:
    if decimals == 0:
        return rg.round(x)
    by = 10.0 ** abs(decimals)
    return rg.round(x * by) / by if decimals > 0 else rg.round(x / by) * by


def histogram(x: Any, bins: Any, range: Any = None, *, weight: Any = None, density: bool) -> Any:
    return rg.histogram(rg.reshape(x, (-1,)), bins=bins, range=range, density=density,
                        weights=None if weight is None else rg.reshape(weight, (-1,)))  # fmt: skip


def bag(table: Any, index: Any, **options: Any) -> Any:
    return F.embedding_bag(index, table, **{k: v for k, v in options.items() if k != "sparse"})


def at_once(f: Function) -> Function:
    """PyTorch's option that says how to go about it, not what to compute."""
    return lambda *args, options=None, **rest: f(*args, **rest)


def lower_upper(x: Any, *, pivot: bool = True) -> Any:
    assert pivot
    return rg.linalg.lu(x)


def with_distance(f: Function) -> Function:
    """A distance that is a PyTorch function is replaced by the same one of this library."""

    def called(*args: Any, distance_function: Any = None, **options: Any) -> Any:
        return f(*args, distance_function=own_distance(distance_function), **options)

    return called


def own_distance(f: Any) -> Any:
    return None if f is None else F.pairwise_distance


def frequencies(f: Function, *, two: bool) -> Function:
    """A transform along several axes, or along the one that `dim` names."""

    def called(
        x: Any, s: Any = None, dim: Any = (-2, -1) if two else None, norm: Any = None
    ) -> Any:
        dim = (dim,) if isinstance(dim, int) else dim
        s = (s,) if isinstance(s, int) else s
        return f(x, s=s, axes=dim, norm=norm or "backward")

    return called


WRITTEN: dict[str, Function] = {
    "select": rg.Tensor.select,
    "round decimals_0": rg.Tensor.round,
    "add": rg.Tensor.add,
    "repeat_interleave": rg.repeat_interleave,
    "equal": lambda x, y: rg.all(rg.equal(x, y)),
    "tensordot": lambda a, b, *, dims: rg.tensordot(a, b, axes=dims),
    "einsum": einsum,
    "unsafe_chunk": chunks,
    "split": pieces,
    "unsafe_split": pieces,
    "split_with_sizes_copy": pieces,
    "hsplit": lambda x, at: tensor_split(x, at, 0 if x.ndim == 1 else 1),
    "vsplit": lambda x, at: tensor_split(x, at, 0),
    "dsplit": lambda x, at: tensor_split(x, at, 2),
    "meshgrid": lambda *xs, indexing="ij": rg.meshgrid(
        *(xs[0] if isinstance(xs[0], (tuple, list)) else xs), indexing=indexing
    ),
    "expand_copy": expanded,
    "alias_copy": rg.positive,
    "diagonal_copy": diagonal,
    "linalg.diagonal": linalg_diagonal,
    "diagflat": lambda x, offset=0: rg.diag(rg.reshape(x, (-1,)), offset),
    "fliplr": lambda x: rg.flip(x, axis=1),
    "flipud": lambda x: rg.flip(x, axis=0),
    **{
        f"fft.{n}": (
            lambda f: (
                lambda x, n=None, dim=-1, norm=None: f(x, n=n, axis=dim, norm=norm or "backward")
            )
        )(getattr(rg.fft, n))
        for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"fft.{n}": frequencies(getattr(rg.fft, n), two=n[-1] == "2")
        for n in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
    },
    "fft.fftshift": lambda x, dim=None: rg.fft.fftshift(x, axes=dim),
    "fft.ifftshift": lambda x, dim=None: rg.fft.ifftshift(x, axes=dim),
    "fmod": lambda x, y: x - y * rg.trunc(x / y),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "polygamma": lambda x, n: rg.special.polygamma(n, x),
    "special.polygamma": lambda x, n: rg.special.polygamma(n, x),
    "nn.functional.gelu": F.gelu,
    "softmax": softened(rg.softmax),
    "log_softmax": softened(rg.log_softmax),
    "nn.functional.softmin": softened(lambda x, axis: rg.softmax(-x, axis=axis)),
    "cumsum": scanned(rg.cumsum),
    "cummax": scanned(rg.cummax),
    "cummin": scanned(rg.cummin),
    "logcumsumexp": scanned(rg.logcumsumexp),
    "logsumexp": lambda x, dim, keepdim=False: rg.logsumexp(
        x, axis=axes(dim) if x.ndim else None, keepdims=keepdim
    ),
    "aminmax": lambda x, *, dim=None, keepdim=False: (
        rg.min(x, axis=dim, keepdims=keepdim),
        rg.max(x, axis=dim, keepdims=keepdim),
    ),
    "max": extremum(rg.max),
    "min": extremum(rg.min),
    "max binary": rg.maximum,
    "min binary": rg.minimum,
    "argmax": along(rg.argmax),
    "argmin": along(rg.argmin),
    "std": spread(rg.std),
    "var": spread(rg.var),
    "quantile": quantile,
    "kthvalue": smallest,
    "topk": top,
    "norm": power_of_norm,
    "linalg.norm": lambda x, ord=None, dim=None, keepdim=False: rg.linalg.norm(
        x, ord=ord, axis=axes(dim), keepdims=keepdim
    ),
    "linalg.matrix_norm": lambda x, ord="fro", dim=(-2, -1), keepdim=False: rg.linalg.norm(
        x, ord=ord, axis=tuple(dim), keepdims=keepdim
    ),
    "linalg.vector_norm": lambda x, ord=2, dim=None, keepdim=False: rg.vector_norm(
        x, ord=ord, axis=axes(dim), keepdims=keepdim
    ),
    "where": lambda x, condition, y: rg.where(condition, x, y),
    "narrow_copy": narrowed,
    "slice": sliced,
    "permute_copy": lambda x, dims: rg.permute_dims(x, tuple(dims)),
    "transpose": lambda x, a, b: rg.swapaxes(x, a, b) if x.ndim else x,
    "transpose_copy": lambda x, a, b: rg.swapaxes(x, a, b) if x.ndim else x,
    "t_copy": lambda x: rg.permute_dims(x, tuple(reversed(range(x.ndim)))),
    "T": lambda x: rg.permute_dims(x, tuple(reversed(range(x.ndim)))),
    "H": hermitian,
    "mT": rg.matrix_transpose,
    "mH": lambda x: rg.conj(rg.matrix_transpose(x)),
    "view_copy": lambda x, *size: rg.reshape(x, sized(*size)),
    "atleast_1d": at_least(1),
    "atleast_2d": at_least(2),
    "atleast_3d": at_least(3),
    "hstack": stacked(1, 1),
    "vstack": stacked(2, 0),
    "dstack": stacked(3, 2),
    "column_stack": columns,
    "unbind_copy": lambda x, dim=0: rg.unstack(x, axis=dim),
    "unsqueeze_copy": lambda x, dim: rg.expand_dims(x, axis=dim),
    "squeeze": lambda x, dim=None: squeezed(x, dim),
    "squeeze_copy": lambda x, dim=None: squeezed(x, dim),
    "unfold": unfolded,
    "unfold_copy": unfolded,
    "rot90": rotated,
    "repeat": repeated,
    "trapz": trapezoid,
    "trapezoid": trapezoid,
    "cumulative_trapezoid": cumulative_trapezoid,
    "trace": rg.linalg.trace,
    "cov": covariance,
    "float_power": lambda x, n: rg.pow(x, n),
    "__rdiv__": lambda x, y: y / x,
    "linalg.cholesky": rooted,
    "linalg.solve_triangular": solve_triangular,
    "linalg.inv_ex": rg.linalg.inv,
    "triangular_solve": lambda b, a, **options: (triangular_solve(b, a, **options), a),
    "linalg.solve_ex": lambda a, b, **_: rg.linalg.solve(a, b),
    "linalg.cholesky_ex": rooted,
    "linalg.eigvalsh": lambda x, UPLO="L": rg.linalg.eigvalsh(one_triangle(x, UPLO)),
    "linalg.lu": lower_upper,
    "linalg.tensorsolve": lambda a, b, *, dims=None: rg.linalg.tensorsolve(a, b, axes=dims),
    "linalg.vecdot": lambda a, b, *, dim=-1: rg.vecdot(a, b, axis=dim),
    "linalg.cross": lambda a, b, *, dim=-1: rg.cross(a, b, axis=dim),
    "nn.functional.adaptive_max_pool1d": adaptive_max(F.adaptive_max_pool1d),
    "nn.functional.adaptive_max_pool2d": adaptive_max(F.adaptive_max_pool2d),
    "nn.functional.adaptive_max_pool3d": adaptive_max(F.adaptive_max_pool3d),
    "nn.functional.embedding": lambda table, index, **options: F.embedding(
        index, table, **{k: v for k, v in options.items() if k != "sparse"}
    ),
    "constant_pad_nd": lambda x, pad, value=0: F.pad(x, pad, value=value),
    "round": rounded,
    "histogram": histogram,
    "nn.functional.embedding_bag": bag,
    "nn.functional.linear_cross_entropy": at_once(F.linear_cross_entropy),
    "nn.functional.triplet_margin_with_distance_loss": with_distance(
        F.triplet_margin_with_distance_loss
    ),
    "nonzero": lambda x, *, as_tuple=False: rg.nonzero(x) if as_tuple else rg.argwhere(x),
    "linalg.lstsq": lambda a, b, *, driver=None: rg.linalg.lstsq(a, b)[0],
    "linalg.eigh": lambda x, UPLO="L": rg.linalg.eigh(one_triangle(x, UPLO)),
    "linalg.pinv": lambda x, *, hermitian=False, **options: rg.linalg.pinv(
        one_triangle(x, "L") if hermitian else x, **options
    ),
    "linalg.pinv singular": lambda a, b: rg.linalg.pinv(rg.matmul(a, rg.matrix_transpose(b))),
    "linalg.matrix_rank": lambda x, *, hermitian=False, atol=None, rtol=None: rg.linalg.matrix_rank(
        x, rtol=rtol
    ),
    "grid_sampler_2d": lambda x, grid, mode, padding, corners: sampled(
        x, grid, mode, padding, corners
    ),
    "grid_sampler_3d": lambda x, grid, mode, padding, corners: sampled(
        x, grid, mode, padding, corners
    ),
}
