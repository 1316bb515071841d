"""One program for several libraries: what PyTorch, retrograd and JAX call by the same name.

`lib` is the module `torch` or `retrograd`, or what `jax_library` makes of JAX. What they share is
looked up in it, so that a workload is written once; where libraries have other words for something,
or a better way, it is written for each.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.harness.workload import Build, Session, loop
from benchmarks.workloads.adam import eager, jax_adam, jax_state, retrograd_adam

Loss = Callable[..., Any]  # loss(lib, parameters, *batch)
Batches = Callable[[], Sequence[tuple[Any, ...]]]


def item(value: Any) -> float:
    return float(value.item())


# -- programs that are written for PyTorch --------------------------------------------------------
def both(program: Callable[[Any], Session]) -> dict[str, Build]:
    """The peers of a program that runs as it is in retrograd and in PyTorch."""
    return {
        "retrograd-eager": lambda: program(importlib.import_module("retrograd")),
        "torch": lambda: program(importlib.import_module("torch")),
    }


def tensors(lib: Any, batches: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(lib.tensor(a) for a in batch) for batch in batches]


def filled(lib: Any, model: Any, seed: int = 0) -> Any:
    """The model with weights that are the same in every library: normal, scaled by what goes into
    an output; ones for the weights of norms, zeros for biases."""
    rng = np.random.default_rng(seed)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    state = {name: lib.tensor(values(rng, name, shapes[name])) for name in sorted(shapes)}
    model.load_state_dict(state, strict=False)
    return model


def values(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Any:
    if len(shape) > 1:
        return normal(rng, *shape)
    return np.full(shape, 1.0 if name.endswith("weight") else 0.0, np.float32)


def normal(rng: np.random.Generator, *shape: int) -> Any:
    """A weight `[out, in, ...]` whose outputs are about as large as its inputs."""
    return rng.normal(0, math.prod(shape[1:]) ** -0.5, shape).astype(np.float32)


def adam_loop(lib: Any, model: Any, loss: Loss, batches: Batches, lr: float) -> Session:
    """Training a module: the loop that everybody writes."""
    fused = {"fused": True} if lib.__name__ == "torch" else {}
    optimizer = lib.optim.Adam(model.parameters(), lr=lr, **fused)
    step = eager(lambda m, *batch: loss(lib, m, *batch), model, optimizer)
    return loop(step, None, tensors(lib, batches()), item)


def trained_module(
    make: Callable[[Any], Any], loss: Loss, batches: Batches, lr: float = 1e-3
) -> dict[str, Build]:
    """The peers that train a module: compiled by retrograd as a function of the module, and in
    retrograd and PyTorch as everybody writes it."""

    def compiled() -> Session:
        import retrograd as rg

        optimizer = rg.optim.Adam(lr=lr)
        update = retrograd_adam(lambda m, *batch: loss(rg, m, *batch), optimizer)
        model = filled(rg, make(rg))
        step = rg.jit(update, donate=("state",))
        return loop(step, (model, optimizer.init(model)), tensors(rg, batches()), item)

    def program(lib: Any) -> Session:
        return adam_loop(lib, filled(lib, make(lib)), loss, batches, lr)

    return {"retrograd": compiled, **both(program)}


# -- functions of a tree of weights ---------------------------------------------------------------
def trained(
    weights: Callable[[], Mapping[str, Any]],
    batches: Batches,
    loss: Loss,
    lr: float = 1e-3,
    jax: bool = True,
    named: Sequence[str] = (),
) -> dict[str, Build]:
    """The peers that minimize `loss(lib, p, *batch)` by Adam, p a dict of weights. `named` are the
    shapes of a batch with names for sizes, for one more peer."""

    def compiled(shapes: Sequence[str] = ()) -> Session:
        import retrograd as rg

        optimizer = rg.optim.Adam(lr=lr)
        update = retrograd_adam(lambda p, *batch: loss(rg, p, *batch), optimizer)

        def whole(state: Any, batch: Any) -> Any:
            return update(state, *batch)

        sizes: dict[str, Any] = {"shapes": {"batch": tuple(shapes)}} if shapes else {}
        step = rg.jit(whole, donate=("state",), **sizes)
        p = {k: rg.tensor(w) for k, w in weights().items()}
        coming = [(batch,) for batch in tensors(rg, batches())]
        return loop(step, (p, optimizer.init(p)), coming, item)

    def program(lib: Any) -> Session:
        p = {k: lib.tensor(w, requires_grad=True) for k, w in weights().items()}
        fused = {"fused": True} if lib.__name__ == "torch" else {}
        optimizer = lib.optim.Adam(list(p.values()), lr=lr, **fused)
        step = eager(lambda p, *batch: loss(lib, p, *batch), p, optimizer)
        return loop(step, None, tensors(lib, batches()), item)

    def with_jax() -> Session:
        import jax

        lib = jax_library()
        step = jax.jit(jax_adam(lambda p, *batch: loss(lib, p, *batch), lr), donate_argnums=0)
        return loop(step, jax_state(dict(weights())), tensors(lib, batches()), float)

    peers: dict[str, Build] = {"retrograd": compiled}
    if named:
        peers["retrograd-named"] = lambda: compiled(named)
    peers |= both(program)
    return {**peers, "jax": with_jax} if jax else peers


def segment_sum(lib: Any, data: Any, ids: Any, count: int) -> Any:
    """The sum of the rows of each segment, in the words of the library."""
    if lib.__name__ == "torch":
        return data.new_zeros((count, *data.shape[1:])).index_add(0, ids, data)
    return lib.segment_sum(data, ids, count)


# -- JAX -----------------------------------------------------------------------------------------
class Jax(SimpleNamespace):
    """`jax.numpy`, with what is added in `jax_library` before it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("jax.numpy"), name)


def jax_library() -> Any:
    """JAX under the names that PyTorch and retrograd share, written as users of JAX do."""
    import jax
    import jax.numpy as jnp

    def linear(x: Any, w: Any, b: Any = 0.0) -> Any:
        return x @ w.T + b

    def cross_entropy(z: Any, y: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(z), y[..., None], -1).mean()

    def layer_norm(x: Any, shape: Any, w: Any, b: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        var = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * w + b

    def attention(q: Any, k: Any, v: Any, is_causal: bool = False) -> Any:
        scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        if is_causal:
            scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jax.nn.softmax(scores) @ v

    functional = SimpleNamespace(
        linear=linear,
        cross_entropy=cross_entropy,
        layer_norm=layer_norm,
        scaled_dot_product_attention=attention,
        embedding=lambda i, w: w[i],
        mse_loss=lambda x, y: ((x - y) ** 2).mean(),
        gelu=lambda x, approximate: jax.nn.gelu(x, approximate=approximate == "tanh"),
        relu=jax.nn.relu,
        silu=jax.nn.silu,
        softplus=jax.nn.softplus,
        leaky_relu=lambda x, slope: jax.nn.leaky_relu(x, slope),
    )
    return Jax(
        __name__="jax",
        nn=SimpleNamespace(functional=functional),
        tensor=jnp.asarray,
        relu=jax.nn.relu,
        sigmoid=jax.nn.sigmoid,
        softmax=jax.nn.softmax,
        logsumexp=jax.nn.logsumexp,
        segment_sum=jax.ops.segment_sum,
        scan=jax.lax.scan,
        while_loop=jax.lax.while_loop,
        vmap=jax.vmap,
        grad=jax.grad,
    )
