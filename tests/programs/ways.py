"""The ways to run one program. Each gives arrays; one that refuses raises an error."""

from __future__ import annotations

import random
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.eager import segments, trace_buffer
from retrograd.eager.program_cache import PROGRAMS
from retrograd.eager.trace_cache import SITES
from retrograd.runtime.executors import tiered
from retrograd.runtime.executors.graph_family import FAMILIES
from retrograd.tuning import TUNING
from tests.programs.plain import Plain
from tests.programs.program import Array, Program

Values = list[Array]
Way = Callable[[Program], Values]


STEPS = 9  # of a loop


class NoSuchWay(Exception):
    """A program cannot be run so, and need not be."""


def arrays_of(results: Any) -> Values:
    return [np.asarray(y) for y in results]


def tensors(p: Program) -> list[Any]:
    return [rg.tensor(x) for x in p.arrays()]


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def fresh(full: int = 0, cost: int | None = None, recorded: bool = False) -> Iterator[None]:
    """As in a process that has just started: recordings cut after so many operations, programs
    compiled at once (`cost` large) or never (0), operations recorded from the first time on."""
    trace_buffer.end_run()
    with pytest.MonkeyPatch.context() as patch:
        if cost is not None:
            patch.setattr(tiered, "node_cost", lambda node, sizes: cost)
        if full:
            patch.setattr(trace_buffer, "FULL", full)
            patch.setattr(segments, "LONGEST", full)
        if recorded:
            patch.setattr(TUNING, "returned_runs", 0)
            patch.setattr(TUNING, "unknown_recordings", 10**6)
        for table in (SITES, PROGRAMS, FAMILIES):
            table.clear()
        trace_buffer.CURRENT.buffer.close()
        yield
        trace_buffer.end_run()
    for table in (SITES, PROGRAMS, FAMILIES):
        table.clear()


# -- values ---------------------------------------------------------------------------------------
def reference(p: Program, **words: Any) -> Values:
    with rg.backend("reference"):
        return arrays_of(p.function(**words)(*tensors(p)))


def plain(p: Program) -> Values:
    return reference(p, rg=Plain())


def by_numpy(p: Program) -> Values:
    if not p.has("numpy"):
        raise NoSuchWay
    try:
        return arrays_of(p.function("numpy")(*[x.copy() for x in p.arrays()]))
    except Exception as error:
        raise NoSuchWay from error


def eager(p: Program) -> Values:
    return arrays_of(p.function()(*tensors(p)))


def looked_at(p: Program) -> Values:
    """Somebody looks at each input, and at outputs from the last on."""
    given = tensors(p)
    for x in given:
        (x + 0 if x.dtype is not rg.bool else x).numpy()
    found = p.function()(*given)
    return [np.asarray(y) for y in found[::-1]][::-1]


def recorded(p: Program) -> Values:
    with fresh(recorded=True):
        eager(p)
        return eager(p)


def cut(p: Program) -> Values:
    with fresh(full=3, recorded=True):
        return eager(p)


def interpreted(p: Program) -> Values:
    with fresh(cost=0, recorded=True):
        return eager(p)


def compiled(p: Program) -> Values:
    with fresh(cost=10**7, recorded=True):
        eager(p)
        return eager(p)


def returning(p: Program) -> Values:
    """A loop of eager steps, which are run at once, then recorded, interpreted and compiled."""
    with _soon_hot():
        f = p.function()
        found = [arrays_of(f(*tensors(p))) for _ in range(STEPS)]
    for k, other in enumerate(found[:-1]):
        _same(other, found[-1], f"step {k}, beside the last")
    return found[-1]


@contextmanager
def _soon_hot() -> Iterator[None]:
    with fresh(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(TUNING, "returned_runs", 4)
        patch.setattr(tiered, "node_cost", lambda node, sizes: 10**4)
        yield


def jitted(p: Program) -> Values:
    _traceable(p)
    f = rg.jit(p.function())
    first = arrays_of(f(*tensors(p)))
    again = arrays_of(f(*p.arrays()))
    _same(first, again, "its second call, of arrays")
    return again


def donated(p: Program) -> Values:
    _traceable(p)
    f = rg.jit(p.function(), donate=tuple(range(len(p.inputs))))
    f(*tensors(p))
    return arrays_of(f(*tensors(p)))


def two_threads(p: Program) -> Values:
    _traceable(p)
    with rg.num_threads(2):
        return arrays_of(rg.jit(p.function())(*tensors(p)))


def in_a_thread(p: Program) -> Values:
    return _in_threads([lambda: eager(p)])[0]


def in_threads(p: Program) -> Values:
    """Several at once, that share inputs and a compiled function."""
    given = tensors(p)
    f = p.function()
    compiled_f = f if "looks" in p.traits() else rg.jit(f)
    work = [lambda: arrays_of(f(*given)), lambda: arrays_of(compiled_f(*given))] * 2
    found = _in_threads(work)
    for k, other in enumerate(found[:-1]):
        _same(other, found[-1], f"thread {k}, beside the last")
    return found[-1]


def _in_threads(work: Sequence[Callable[[], Values]]) -> list[Values]:
    found: dict[int, Values] = {}
    errors: list[BaseException] = []

    def run(k: int) -> None:
        try:
            found[k] = work[k]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [found[k] for k in range(len(work))]


def taped(p: Program) -> Values:
    if "looks" in p.traits():
        raise NoSuchWay
    with rg.Tape() as tape:
        given = [
            tape.leaf(rg.tensor(x), requires_grad=x.dtype.kind not in "iub") for x in p.arrays()
        ]
        return arrays_of(p.function()(*given))


def without_gradients(p: Program) -> Values:
    with rg.no_grad():
        return eager(p)


def requiring(p: Program) -> Values:
    given = [rg.tensor(x, requires_grad=x.dtype.name in FLOATING) for x in p.arrays()]
    return [np.asarray(y.detach()) for y in p.function()(*given)]


def checkpointed(p: Program) -> Values:
    _traceable(p)
    return arrays_of(rg.checkpoint(p.function())(*tensors(p)))


def graph_of(p: Program) -> Any:
    _traceable(p)
    return rg.trace(p.function(), *tensors(p))


def as_text(p: Program) -> Values:
    graph = graph_of(p)
    graph.check()
    again = rg.Graph.parse(str(graph))
    assert again == graph or "rules" in p.traits(), "the text of a graph is not that graph"
    return arrays_of(_tuple(again(*tensors(p))))


def saved(p: Program) -> Values:
    graph = graph_of(p)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.rg"
        graph.save(path)
        return arrays_of(_tuple(rg.load_graph(path)(*tensors(p))))


def optimized(p: Program) -> Values:
    graph = graph_of(p).optimize()
    graph.check()
    return arrays_of(_tuple(graph.compile("reference")(*tensors(p))))


def by_onnx(p: Program) -> Values:
    if find_spec("onnx") is None:
        raise NoSuchWay
    graph = graph_of(p)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        try:
            graph.to_onnx(path)
        except rg.RetrogradError as error:
            raise NoSuchWay from error
        read = rg.load_onnx(path)
        with rg.backend("reference"):
            return arrays_of(_tuple(read(*tensors(p))))


def named_sizes(p: Program) -> Values:
    """With names for sizes, where the program as it is written has any."""
    f, _, _ = _with_names(p)
    return arrays_of(f(*tensors(p)))


def resized(p: Program, names: Mapping[int, str], r: random.Random) -> Program:
    """The program with inputs of other sizes, where it runs on these; equal ones change alike."""
    sizes = {n: r.choice((0, 1, 2, 3, 6, 9, 17)) for n in sorted({*names.values()})}
    rng = np.random.default_rng(r.randrange(1 << 30))
    inputs = {}
    for n, x in p.inputs.items():
        shape = tuple(sizes[names[d]] if d in names else d for d in x.shape)
        if not x.size:
            raise NoSuchWay
        inputs[n] = np.asarray(x.reshape(-1)[rng.integers(0, x.size, shape)])
    q = p.less(inputs=inputs)
    try:
        reference(q)
    except (rg.RetrogradError, IndexError) as error:  # `f(x)[-1]` of nothing is Python's
        raise NoSuchWay from error
    return q


def other_sizes(p: Program, r: random.Random) -> tuple[Values, Program]:
    """What a program compiled with names gives at other sizes, and the program with inputs of
    those."""
    f, names, _ = _with_names(p)
    q = resized(p, names, r)
    f(*tensors(p))
    try:
        return arrays_of(f(*tensors(q))), q
    except rg.ShapeError as error:  # it is written for larger ones
        raise NoSuchWay from error


def changing_sizes(p: Program, r: random.Random) -> tuple[Values, Program]:
    """What an eager loop, and a compiled function, give when sizes change at every step."""
    sizes = sorted({d for x in p.arrays() for d in x.shape if d > 1})
    if not sizes:
        raise NoSuchWay
    kept = r.sample(sizes, r.randint(1, len(sizes)))
    others = [resized(p, dict(zip(kept, "NMKLPQRSTUVW", strict=False)), r) for _ in range(3)]
    loop = [p, *others, p, *others]
    f = p.function()
    if r.random() < 0.5 and "looks" not in p.traits():
        f = rg.jit(f)
    with fresh(recorded=r.random() < 0.7):
        found = [arrays_of(f(*tensors(q))) for q in loop]
    for q, first, again in zip(others, found[1:4], found[5:], strict=True):
        _same(first, again, f"a second time at {[x.shape for x in q.arrays()]}")
    return found[-1], others[-1]


def _with_names(p: Program) -> tuple[Any, Mapping[int, str], Mapping[str, str]]:
    _traceable(p)
    sizes = sorted({d for x in p.arrays() for d in x.shape if d > 1})
    for kept in (sizes, sizes[-1:], sizes[:1]):
        names = dict(zip(kept, "NMKLPQRSTUVW", strict=False))
        shapes = {
            n: " ".join(names.get(d, str(d)) for d in x.shape)
            for n, x in p.inputs.items()
            if x.ndim
        }
        if not names:
            break
        f = rg.jit(p.function(), shapes=shapes)
        try:
            f(*tensors(p))
        except rg.RetrogradError:
            continue  # the text of the program has the number
        return f, names, shapes
    raise NoSuchWay


def on_xla(p: Program) -> Values:
    return _elsewhere(p, "xla")


def on_wgpu(p: Program) -> Values:
    return _elsewhere(p, "wgpu")


def _elsewhere(p: Program, name: str) -> Values:
    _traceable(p)
    if name not in rg.backends():
        raise NoSuchWay
    with rg.backend(name, fallback=name == "wgpu"):
        return arrays_of(rg.jit(p.function())(*tensors(p)))


def by_torch(p: Program) -> Values:
    if find_spec("torch") is None or not p.has("torch"):
        raise NoSuchWay
    import torch

    given = [as_torch(x) for x in p.arrays()]
    try:
        found = p.function("torch", torch=torch)(*given)
    except Exception as error:
        raise NoSuchWay from error
    return [of_torch(y) for y in found]


def as_torch(x: Array) -> Any:
    import torch

    if x.dtype.name == "bfloat16":
        return torch.tensor(x.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(x)


def of_torch(y: Any) -> Array:
    import torch

    y = y.detach().resolve_conj()
    if y.dtype is torch.bfloat16:
        return np.asarray(y.to(torch.float32).numpy()).astype(rg.bfloat16.dtype)
    return np.asarray(y.numpy(force=True))


def _traceable(p: Program) -> None:
    if "looks" in p.traits():
        raise NoSuchWay


def _tuple(results: Any) -> Any:
    return results if isinstance(results, tuple) else (results,)


def _same(a: Values, b: Values, what: str) -> None:
    from tests.programs.compare import same_bits

    wrong = same_bits(b, a)
    assert not wrong, f"{what}: {wrong}"


# Compared to the bit with `eager`, which is compared with the reference.
BITS: dict[str, Way] = {
    f.__name__: f for f in (
        looked_at, recorded, cut, interpreted, compiled, returning, jitted, donated, two_threads,
        in_a_thread, in_threads, taped, without_gradients, requiring, checkpointed, as_text, saved,
        named_sizes,
    )
}  # fmt: skip
# Compared with the reference, within what rounding may do.
NEAR: dict[str, Way] = {
    f.__name__: f for f in (plain, by_numpy, by_torch, optimized, by_onnx, on_xla, on_wgpu)
}
CHEAP = ("plain", "by_numpy", "optimized")

# -- gradients ------------------------------------------------------------------------------------
FLOATING = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64")


def wanted(p: Program) -> tuple[int, ...]:
    """The inputs that have gradients."""
    return tuple(k for k, x in enumerate(p.arrays()) if x.dtype.name in FLOATING)


def weights(y: Any, k: int) -> Array:
    shape = tuple(int(n) for n in y.shape)
    return np.random.default_rng((k, *shape)).uniform(0.5, 1.5, shape)


def loss_of(p: Program, **words: Any) -> Callable[..., Any]:
    """A real number that all outputs enter."""
    f = p.function(**words)

    def loss(*inputs: Any) -> Any:
        total: Any = rg.asarray(0.0, dtype=rg.float64)
        for k, y in enumerate(f(*inputs)):
            if y.dtype.name not in FLOATING:
                continue
            parts = [rg.real(y), rg.imag(y)] if y.dtype.name.startswith("complex") else [y]
            for j, part in enumerate(parts):
                w = rg.asarray(weights(y, 2 * k + j).astype(part.dtype.dtype))
                total = total + rg.astype(rg.sum(rg.sin(part) * w), rg.float64)
        return total

    return loss


def of_reference(p: Program, **words: Any) -> Values:
    with rg.backend("reference"):
        return arrays_of(rg.grad(loss_of(p, **words), wanted(p))(*tensors(p)))


def of_plain(p: Program) -> Values:
    return of_reference(p, rg=Plain())


def backward(p: Program) -> Values:
    given = tensors(p)
    for k in wanted(p):
        given[k].requires_grad = True
    loss = loss_of(p)(*given)
    if loss.requires_grad:
        loss.backward()
    return [
        np.zeros_like(p.arrays()[k]) if given[k].grad is None else np.asarray(given[k].grad)
        for k in wanted(p)
    ]


def backward_reference(p: Program) -> Values:
    with rg.backend("reference"):
        return backward(p)


def backward_recorded(p: Program) -> Values:
    with fresh(recorded=True):
        backward(p)
        return backward(p)


def backward_returning(p: Program) -> Values:
    """Steps of training, of which the first are run at once and the last are compiled."""
    with _soon_hot():
        found = [backward(p) for _ in range(STEPS)]
    for k, other in enumerate(found[:-1]):
        _same(other, found[-1], f"step {k}, beside the last")
    return found[-1]


def backward_cut(p: Program) -> Values:
    with fresh(full=4, recorded=True):
        return backward(p)


def grad_jitted(p: Program) -> Values:
    _traceable(p)
    return arrays_of(rg.jit(rg.grad(loss_of(p), wanted(p)))(*tensors(p)))


def grad_of_jitted(p: Program) -> Values:
    _traceable(p)
    return arrays_of(rg.grad(rg.jit(loss_of(p)), wanted(p))(*tensors(p)))


def grad_eager(p: Program) -> Values:
    return arrays_of(rg.grad(loss_of(p), wanted(p))(*tensors(p)))


def grad_of_checkpoint(p: Program) -> Values:
    _traceable(p)
    with rg.backend("reference"):
        return arrays_of(rg.grad(rg.checkpoint(loss_of(p)), wanted(p))(*tensors(p)))


def graph_gradient(p: Program) -> Values:
    _traceable(p)
    graph = rg.trace(loss_of(p), *tensors(p)).gradient()
    graph.check()
    text = rg.Graph.parse(str(graph))
    assert text == graph or "rules" in p.traits(), "the text of a gradient is not that graph"
    with rg.backend("reference"):
        return arrays_of(_tuple(text(*tensors(p))))


def tape_gradient(p: Program) -> Values:
    if "looks" in p.traits():
        raise NoSuchWay
    with rg.backend("reference"), rg.Tape() as tape:
        given = [
            tape.leaf(rg.tensor(x), requires_grad=x.dtype.name in FLOATING) for x in p.arrays()
        ]
        loss = loss_of(p)(*given)
        found = tape.backward_from({loss: np.float64(1)}, missing="zero")
    return [np.asarray(found[k]) for k in wanted(p)]


def torch_gradient(p: Program) -> Values:
    if find_spec("torch") is None or not p.has("torch"):
        raise NoSuchWay
    import torch

    given = [as_torch(x) for x in p.arrays()]
    for k in wanted(p):
        given[k].requires_grad_(True)
    try:
        total: Any = torch.tensor(0.0, dtype=torch.float64)
        for k, y in enumerate(p.function("torch", torch=torch)(*given)):
            if not (y.is_floating_point() or y.is_complex()):
                continue
            for j, part in enumerate([y.real, y.imag] if y.is_complex() else [y]):
                w = torch.tensor(weights(y, 2 * k + j)).to(part.dtype)
                total = total + (torch.sin(part) * w).sum().to(torch.float64)
        if total.requires_grad:
            total.backward()
    except Exception as error:
        raise NoSuchWay from error
    return [
        np.zeros_like(p.arrays()[k]) if given[k].grad is None else of_torch(given[k].grad)
        for k in wanted(p)
    ]


GRADIENTS: dict[str, Way] = {
    f.__name__: f for f in (
        of_plain, backward_reference, grad_of_checkpoint, graph_gradient, tape_gradient,
        torch_gradient, backward, grad_jitted, grad_of_jitted, grad_eager, backward_recorded,
        backward_cut, backward_returning,
    )
}  # fmt: skip
CHEAP_GRADIENTS = (
    "of_plain",
    "backward_reference",
    "grad_of_checkpoint",
    "graph_gradient",
    "tape_gradient",
)
