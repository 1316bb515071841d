"""What `help`, `dir` and completion show: signatures with names, and every public name."""

import inspect
import subprocess
import sys
import types
from typing import Any

import pytest

import retrograd as rg

# What does take any number of things of one kind, by the name of its parameter.
MANY = {
    "arrays", "arrays_and_dtypes", "axes", "batch", "datasets", "fields", "modules",
    "named", "others", "parts", "shape", "shapes", "size", "sizes", "dims", "tensors", "operands",
    "values", "inputs", "repeats", "transforms", "matrices", "at",
}  # fmt: skip
# `args` and `kwargs` mean something there: they are what another function or module takes.
PASSED_ON = {
    "Graph.__call__", "nn.Identity", "MixedPrecision.forward",
    "AveragedModel.forward", "Parametrizations",
}  # fmt: skip
# What a sum takes: NumPy's names and PyTorch's.
# Written in C, without arguments.
OPERATIONS = ("abs", "cos", "exp", "log", "relu", "sigmoid", "sin", "sqrt", "tanh")
IN_C = {f"Value.{x}" for x in OPERATIONS}


def rooms():
    """The modules that the package shows, and their names."""
    todo, seen = [("rg", rg)], set()
    while todo:
        name, room = todo.pop()
        if room in seen:
            continue
        seen.add(room)
        yield name, room
        for key in names_of(room):
            value = getattr(room, key)
            if isinstance(value, types.ModuleType) and value.__name__.startswith("retrograd"):
                todo.append((f"{name}.{key}", value))


def names_of(room):
    listed = getattr(room, "__all__", None)
    return listed or [
        key for key, value in vars(room).items()
        if not key.startswith("_") and getattr(value, "__module__", None) == room.__name__
    ]  # fmt: skip


def callables():
    """Every public function, class and method, by name."""
    for name, room in rooms():
        for key in names_of(room):
            value = getattr(room, key)
            if not callable(value):
                continue
            if inspect.isclass(value) and issubclass(value, BaseException):
                continue
            yield f"{name}.{key}", value
            if inspect.isclass(value):
                for k in dir(value):
                    inherited = issubclass(value, str) and hasattr(str, k)
                    if not (k.startswith("_") or inherited) and callable(getattr(value, k)):
                        yield f"{name}.{key}.{k}", getattr(value, k)


def problem(name, f):
    """What is wrong with the signature of a function, if anything is."""
    if f is rg.nn.Module.forward or any(name.endswith(x) for x in PASSED_ON | IN_C):
        return None
    try:
        found = inspect.signature(f)
    except (TypeError, ValueError) as error:
        return str(error)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = [p for p in found.parameters.values() if p.name != "self"]
    if taken and all(p.kind in kinds and p.name not in MANY for p in taken):
        return str(found)
    return None


def test_every_callable_has_a_signature_with_names():
    seen = dict(callables())
    assert len(seen) > 5000
    assert {x for x in seen if x.startswith("rg.Tensor.")} > {"rg.Tensor.sum", "rg.Tensor.backward"}
    assert {name: what for name, f in seen.items() if (what := problem(name, f))} == {}


def test_a_signature_of_stars_alone_is_found():
    assert problem("f", lambda *args, **kwargs: 0) == "(*args, **kwargs)"
    assert problem("f", dict.fromkeys) is None
    assert problem("f", lambda x, *args: 0) is None


def test_decorated_functions_have_the_signature_of_what_they_decorate():
    def f(x, y=2.0, *, k: int = 3):
        """What f does."""
        return (x * y).sum() * k

    wanted = inspect.signature(f)
    for transform in (
        rg.jit, rg.grad, rg.value_and_grad, rg.vmap, rg.checkpoint, rg.jacrev, rg.jacfwd,
        rg.jacobian, rg.hessian, rg.custom_vjp, rg.custom_jvp, rg.no_grad, rg.debug,
    ):  # fmt: skip
        made = transform(f)
        assert inspect.signature(made) == wanted, transform
        assert made.__doc__ == "What f does."
        assert made.__name__ == "f"
    assert str(inspect.signature(rg.sum)) != ""
    names = ["x", "axis", "dtype", "keepdims", "dim", "keepdim"]
    assert list(inspect.signature(rg.sum).parameters) == names
    assert list(inspect.signature(rg.ones(2).sum).parameters) == names[1:]
    assert inspect.signature(rg.sum).parameters["keepdims"].default is False


def test_a_module_is_called_with_what_its_forward_takes():
    assert str(inspect.signature(rg.nn.Linear(2, 3))) == "(input: 'Any') -> 'Tensor'"
    assert list(inspect.signature(rg.nn.ReLU()).parameters) == ["input"]
    assert list(inspect.signature(rg.nn.ReLU.forward).parameters) == ["self", "input"]
    assert list(inspect.signature(rg.nn.Linear).parameters)[:3] == [
        "in_features", "out_features", "bias",
    ]  # fmt: skip
    assert str(inspect.signature(rg.nn.Tanh)) == "()"

    class Net(rg.nn.Module):
        def forward(self, x, scale=2.0):
            return x * scale

    assert str(inspect.signature(Net())) == "(x, scale=2.0)"
    assert str(inspect.signature(Net)) == "()"
    graph = rg.trace(Net(), rg.spec(2), scale=rg.spec(()))
    assert [x.name for x in graph.inputs] == ["x", "scale"]


def test_dir_lists_what_there_is():
    for name, room in rooms():
        listed = getattr(room, "__all__", ())
        assert {*listed} <= {*dir(room)}, name
        assert len({*listed}) == len(listed), name
    everything: dict[str, Any] = {}
    exec("from retrograd import *", everything)
    assert {*rg.__all__} <= {*everything}


def test_dir_is_complete_before_anything_was_asked_for():
    """A new process: names that are imported later are listed and completed."""
    code = (
        "import rlcompleter, sys, retrograd as rg\n"
        "assert 'retrograd.nn' not in sys.modules\n"
        "assert {*rg.__all__, *rg.LATER, *rg.LATER_NAMES} <= {*dir(rg)}\n"
        "assert 'retrograd.nn' not in sys.modules\n"
        "found = rlcompleter.Completer({'rg': rg}).attr_matches('rg.hess')\n"
        "assert found and found[0].startswith('rg.hessian'), found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_completion_in_ipython():
    module = pytest.importorskip("IPython.core.completer", reason="IPython is not installed")
    completer = module.Completer(namespace={"rg": rg})
    assert {"rg.nn", "rg.hessian", "rg.sum"} <= {*completer.attr_matches("rg.")}
